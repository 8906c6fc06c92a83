// Package change has the steps by which a Memcached gets to what its spec requests. Each is a function of the Memcached
// and of what is known of it ([View]), and returns what it does, as a value ([Plan]). The package comment of package
// memcached lists them in their order, and explains a change in place. Of the operator, it imports packages pool and
// objects.
package change
