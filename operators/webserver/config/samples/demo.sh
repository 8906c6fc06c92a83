# Sourced by hack/demo.sh: a web server whose page is shown, and shown again
# while its image is upgraded.
say "WebServer: a page, and a new image under it"
bin/localcluster image --dir "$LOCALCLUSTER_DIR" nginx:1.22.1 nginx:1.26.3
kubectl delete --ignore-not-found --wait webservers.my.domain/demo >/dev/null
kubectl apply -f - <<YAML
apiVersion: my.domain/v1
kind: WebServer
metadata:
  name: demo
spec:
  image: nginx:1.22.1
  replicas: 2
  content:
    inline: <h1>Hello from a WebServer</h1>
YAML
kubectl wait --for=condition=Ready --timeout 10m webservers.my.domain/demo
kubectl get webservers.my.domain demo
kubectl get deployment demo
kubectl get service demo-service
url=$(kubectl get webservers.my.domain demo -o jsonpath='{.status.url}')
# get asks for the page by hand: a fresh machine has no curl.
get() (
	host=${url#http://}
	exec 3<>"/dev/tcp/${host%:*}/${host#*:}" && printf 'GET / HTTP/1.0\r\n\r\n' >&3 && timeout 5 cat <&3
)
page() { get | tr -d '\r' | sed '1,/^$/d'; }
# The node's rules may be a moment behind the Service's addresses.
for _ in $(seq 50); do
	page >/dev/null 2>&1 && break
	sleep 0.1
done
page || fail "the page cannot be had"
[[ $(page) == *"Hello from a WebServer"* ]] || fail "the page is not the one that was given"
echo
kubectl patch webservers.my.domain demo --type merge -p '{"spec":{"image":"nginx:1.26.3"}}'
for _ in $(seq 1200); do
	[[ $(page) == *"Hello from a WebServer"* ]] || fail "a request failed during the upgrade"
	[[ $(kubectl get webservers.my.domain demo -o jsonpath='{.status.lastGoodImage}') == nginx:1.26.3 ]] && break
	sleep 0.5
done
kubectl wait --for=condition=Ready --timeout 10m webservers.my.domain/demo
kubectl get webservers.my.domain demo -o wide
# A pod of the old image may answer until it has drained.
for _ in $(seq 60); do
	server=$(get | tr -d '\r' | grep -i '^server:' || true)
	[[ $server != *nginx/1.26.3 ]] || break
	sleep 0.5
done
echo "$server"
[[ $server == *nginx/1.26.3 ]] || fail "the new image does not serve"
