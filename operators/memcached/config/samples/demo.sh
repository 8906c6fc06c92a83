# Sourced by hack/demo.sh: a cache that has a value stored in it, is upgraded,
# and still has it.
say "Memcached: a value that outlives the upgrade of its server"
bin/localcluster image --dir "$LOCALCLUSTER_DIR" memcached:1.6.18 memcached:1.6.38
kubectl delete --ignore-not-found --wait memcacheds.cache.example.com/demo-cache >/dev/null
kubectl apply -f - <<YAML
apiVersion: cache.example.com/v1alpha1
kind: Memcached
metadata:
  name: demo-cache
spec:
  size: 2
  version: 1.6.18
  identity: Stable
  upgrade: Warm
YAML
kubectl wait --for=condition=Ready --timeout 10m memcacheds.cache.example.com/demo-cache
kubectl get memcacheds.cache.example.com demo-cache
kubectl get statefulset demo-cache
# ask sends lines to a server: the image has nc, a fresh machine has not.
ask() { printf '%s\r\n' "$@" quit | kubectl exec -i demo-cache-0 -c memcached -- nc 127.0.0.1 11211 | tr -d '\r'; }
ask 'set greeting 0 0 22' 'Hello from a Memcached' | grep -q STORED || fail "the value is not stored"
ask version 'get greeting'
address=$(kubectl get pod demo-cache-0 -o jsonpath='{.status.podIP}')
kubectl patch memcacheds.cache.example.com demo-cache --type merge -p '{"spec":{"version":"1.6.38"}}'
kubectl wait --for=jsonpath='{.status.version}'=1.6.38 --timeout 10m memcacheds.cache.example.com/demo-cache
kubectl wait --for=condition=Ready --timeout 10m memcacheds.cache.example.com/demo-cache
kubectl get memcacheds.cache.example.com demo-cache -o wide
answer=$(ask version 'get greeting')
echo "$answer"
[[ $answer == *"VERSION 1.6.38"* ]] || fail "the new version does not answer"
[[ $answer == *"Hello from a Memcached"* ]] || fail "the value is gone"
[[ $(kubectl get pod demo-cache-0 -o jsonpath='{.status.podIP}') == "$address" ]] || fail "the server has another address"
