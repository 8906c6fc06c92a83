# Sourced by hack/demo.sh: a command that runs in five seconds, on time, and
# whose output is shown.
say "At: a command that runs five seconds from now"
kubectl delete --ignore-not-found --wait ats.at.example.com/demo >/dev/null
kubectl apply -f - <<YAML
apiVersion: at.example.com/v1alpha1
kind: At
metadata:
  name: demo
spec:
  schedule: "$(date --utc --date '5 seconds' +%Y-%m-%dT%H:%M:%SZ)"
  command: echo "hello from pod \$HOSTNAME" | tr a-z A-Z
YAML
kubectl get ats.at.example.com demo
kubectl wait --for=condition=Complete --timeout 10m ats.at.example.com/demo
kubectl get ats.at.example.com demo -o wide
kubectl get pod demo
output=$(kubectl logs demo)
echo "$output"
[[ $output == "HELLO FROM POD DEMO" ]] || fail "the command's output is not there"
