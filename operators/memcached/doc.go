// Package memcached is the Memcached operator: a pool of memcached servers that
// grows, shrinks, heals, and keeps its cache through an upgrade where the spec
// requests it.
//
// # The promise
//
//   - A change that empties caches is announced first: it is in status.upgrade, and
//     in an event, before the first server is touched. What it does to each server is
//     decided from what that one has (pool/effect.go).
//   - A warm change restarts each server in its pod, with its address and its
//     items, one at a time, and only when nothing is left to wait for: the
//     image is on its node, and all other servers are there.
//   - Bad users and certificates never reach a server.
//   - What status reports of a server is what the server has.
//   - Every field that the operator sets, and every child that it made, is
//     repaired, also a pod that has lost its labels (lost.go). Fields that
//     others set are left to them.
//   - No finalizer: owner references delete the children, also when no operator
//     runs.
//
// # The steps
//
// They are functions of these names, in this order (table in decide.go). Each is a function of
// the Memcached and of what is known (change.View), and returns what it does, as a value.
// If change.Adopt has something to do, it is the last. Patches of servers' pods are sent after all
// other writes.
//
//	change.Adopt          label a Deployment that a StatefulSet is to replace, so that it is found
//	change.CopySecrets    write the copies of Secrets that the pods mount
//	change.PlanUpgrade    announce in status the change that the servers need
//	change.Serve          apply the Service: clients see the servers of one identity, while that changes
//	change.Explain        note what else a user is to know of servers that are ready
//	change.ApplyServers   apply the Deployment or StatefulSet: a cold change once it is announced
//	change.RemoveUnused   remove the workload of the other identity, once clients do not need it,
//	                      and copies that no pod mounts
//	change.CountChanged   label changed servers for a template that was changed meanwhile: the
//	                      StatefulSet's controller would wait for them
//	change.RestoreLabels  restore the labels that servers have lost
//	change.ReloadSecrets  annotate pods whose copies have changed, so that their kubelets read them
//	change.PullImage      pull the image on each node that will need it
//	change.ChooseServer   name in status the server whose turn it is to be changed in place
//	change.Guard          allow no eviction while a server is restarted
//	change.GrowServer     give the container of that server the memory that it will need
//	change.UpdateServer   change that server, which restarts memcached where that is needed
//	change.RemovePulls    remove the pods that pulled an image, once no server waits for it
//	change.AwaitRecovery  wake for servers that have crashed, or that start
//	change.AwaitMemory    wake for servers that are not known to have their memory
//
// # How a warm change goes
//
// Memcached can leave its memory in a file (-e) when it is stopped with
// SIGUSR1, and start with it. The file lies in an emptyDir of the pod, in
// memory, so it outlives the container and not the pod. A pod's image may be
// changed while it runs; the kubelet then stops that container only. Arguments
// may not, so settings are annotations of the pod, which the container's
// environment is made from at each start.
//
//	the StatefulSet has the new template    its partition is above all servers:
//	                                        its controller replaces no pod
//	the image is pulled                     by a pod on each node; it also shows
//	                                        that the image starts there, and its
//	                                        version
//	status names the server                 all are there, or this one is not
//	no other one can be evicted             the PodDisruptionBudget allows none, and
//	                                        its controller has seen that
//	the pod is changed                      image, settings and revision, in one
//	                                        write under its resource version
//	its container is another one, and ready
//	status names the next one               … and so on, the highest first
//	all are of the new revision             the StatefulSet's controller takes
//	                                        it for the present one
//
// Each step is one write that follows from what is seen, so whichever operator leads next
// continues from there. The name in status is what keeps two operators, or one with an
// old view, from restarting two servers at the same time: naming one is a write under the
// resource version of a Memcached that names no other, and only the named one is changed.
// The pod notes which containers the change ends, because until its kubelet gets to it,
// its status is the one from before the change. An edit meanwhile waits until the server
// is available: a second stop could lose what it writes or reads in.
//
// What ends and starts memcached is in objects/command.go: a hook that sends SIGUSR1 and
// waits for the process to be gone, because the kubelet's SIGTERM would overtake
// it; a start that waits for the next second, without which memcached refuses
// the file; and, for changes of settings only, a loop that sees the annotation
// change and ends memcached, upon which the kubelet starts it again. Kubernetes
// holds back the second such start within ten minutes, so that is waited for; an
// annotation has what Kubernetes remembers (pool/restart.go).
//
// # How a cold change goes
//
// What cannot be changed in place has a hash in the pods (objects.ReplaceAnnotation). If
// it differs, the partition goes to 0 once status has announced it, and the controller
// of the StatefulSet replaces the pods. It is at 0 also where there is no pod,
// until the new template is the present one: what is made is of that one then.
// A Deployment's changes are always cold.
//
// # Memory
//
// The limit of a container follows from memory and maxConnections (objects/memory.go), unless the
// user's template has one. A warm server that is allowed more connections is resized before
// it is restarted.
//
// Without a memory file, stable servers get more memory while they run: the container is
// resized, unless a limit of the user's own has room for it, and after that, an
// annotation makes the loop in the container send cache_memlimit. Nothing that Kubernetes
// reports says whether memcached took it, so it is read back (readback.go). With -e
// memcached cannot (cache_memlimit answers MEMLIMIT_ADJUST_FAILED, for the memory is
// mapped as a whole), and a file of another size is refused: with a warm upgrade, a
// change of memory is always cold.
//
// # A spec that cannot be carried out
//
// A limit of memory that is too low, and a Secret that is missing, are refused: the servers
// stay as they are. All else goes on, such as scaling, repairs and a change that was begun,
// with the spec as the servers have it. That one is read from their template, and it counts
// only if it renders to the very template (pool/request.go); else nothing is applied.
//
// # How users and certificates get to the servers
//
// Pods mount copies of the Secrets, which are written only with what memcached
// can read (secrets.go). A change of the copy is followed by an annotation on
// each pod, which makes its kubelet look at the pod's volumes at once. The loop
// in the container sees the volume change and sends SIGHUP, which makes memcached
// read its users, and for a certificate the command refresh_certs, through a
// port that only the pod itself can reach. So the operator
// needs no right to run commands in pods, no process in the pod is more
// privileged than memcached, and it works where the operator cannot reach the
// pods' network.
//
// # Pools of earlier versions
//
// A template that renders to something else would replace pods because the
// operator was upgraded. Each pool is rendered as the version did that made it,
// until its pods are replaced anyway (objects/earlier.go).
package memcached
