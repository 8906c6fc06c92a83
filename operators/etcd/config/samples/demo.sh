# Sourced by hack/demo.sh: an etcd cluster that loses the pod of its leader, and still has
# what was put; and a key that is backed up, deleted, and restored.
say "EtcdCluster: a key that outlives the pod of the leader"
bin/localcluster image --dir "$LOCALCLUSTER_DIR" quay.io/coreos/etcd:v3.6.16
kubectl delete --ignore-not-found --wait {etcdrestores,etcdbackups,etcdclusters}.etcd.database.coreos.com/demo-etcd >/dev/null
kubectl delete --ignore-not-found --wait pvc/demo-etcd-backups >/dev/null
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

say "EtcdBackup and EtcdRestore: a deleted key comes back"
kubectl apply -f - <<YAML
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  name: demo-etcd-backups
spec:
  accessModes: [ReadWriteOnce]
  resources: {requests: {storage: 256Mi}}
---
apiVersion: etcd.database.coreos.com/v1beta2
kind: EtcdBackup
metadata:
  name: demo-etcd
spec:
  etcdCluster: demo-etcd
  storageType: PersistentVolumeClaim
  persistentVolumeClaim:
    claimName: demo-etcd-backups
    path: demo.backup
  verify: Restore
YAML
kubectl wait --for=condition=Ready --timeout 10m etcdbackups.etcd.database.coreos.com/demo-etcd
kubectl get etcdbackups.etcd.database.coreos.com demo-etcd -o wide
[[ -n $(kubectl get etcdbackups.etcd.database.coreos.com demo-etcd -o jsonpath='{.status.lastProof.time}') ]] || fail "the backup was not proved"
etcdctl del /greeting
[[ -z $(etcdctl get /greeting) ]] || fail "the key was not deleted"
kubectl apply -f - <<YAML
apiVersion: etcd.database.coreos.com/v1beta2
kind: EtcdRestore
metadata:
  name: demo-etcd
spec:
  etcdCluster:
    name: demo-etcd
  backupStorageType: PersistentVolumeClaim
  persistentVolumeClaim:
    claimName: demo-etcd-backups
    path: demo.backup
YAML
kubectl wait --for=condition=Ready --timeout 10m etcdrestores.etcd.database.coreos.com/demo-etcd
kubectl wait --for=condition=Ready --timeout 10m etcdclusters.etcd.database.coreos.com/demo-etcd
kubectl get etcdrestores.etcd.database.coreos.com demo-etcd -o wide
answer=$(etcdctl get /greeting)
echo "$answer"
[[ $answer == *"Hello from an EtcdCluster"* ]] || fail "the key was not restored"
