# Sourced by hack/demo.sh: an etcd cluster that loses the pod of its leader, and still has
# what was put.
say "EtcdCluster: a key that outlives the pod of the leader"
bin/localcluster image --dir "$LOCALCLUSTER_DIR" quay.io/coreos/etcd:v3.6.16
kubectl delete --ignore-not-found --wait etcdclusters.etcd.database.coreos.com/demo-etcd >/dev/null
kubectl apply -f - <<YAML
apiVersion: etcd.database.coreos.com/v1beta2
kind: EtcdCluster
metadata:
  name: demo-etcd
spec:
  size: 3
  version: 3.6.16
YAML
kubectl wait --for=condition=Ready --timeout 10m etcdclusters.etcd.database.coreos.com/demo-etcd
kubectl get etcdclusters.etcd.database.coreos.com demo-etcd
kubectl get pods -l etcd_cluster=demo-etcd
# etcdctl runs in the pod of a member that is ready, and asks through the Service.
etcdctl() {
	local member
	member=$(kubectl get etcdclusters.etcd.database.coreos.com demo-etcd -o jsonpath='{.status.members.ready[0]}')
	kubectl exec "$member" -c etcd -- etcdctl --endpoints=http://demo-etcd-client:2379 "$@"
}
etcdctl put /greeting 'Hello from an EtcdCluster'
leader=$(kubectl get etcdclusters.etcd.database.coreos.com demo-etcd -o jsonpath='{.status.leader}')
kubectl delete pod "$leader" --wait
kubectl wait --for=condition=Ready=False --timeout 1m etcdclusters.etcd.database.coreos.com/demo-etcd || true
kubectl wait --for=condition=Ready --timeout 10m etcdclusters.etcd.database.coreos.com/demo-etcd
kubectl get etcdclusters.etcd.database.coreos.com demo-etcd -o wide
answer=$(etcdctl get /greeting)
echo "$answer"
[[ $answer == *"Hello from an EtcdCluster"* ]] || fail "the key is gone"
