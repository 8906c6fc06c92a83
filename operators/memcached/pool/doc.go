// Package pool is what the servers of a Memcached are: what was observed, as data without a client ([Observation]), how
// far the restart of a server is, what the servers are to be ([Request]), which change they need for that, and what it
// does to their items. Nothing here writes, and of the operator it imports package objects only.
package pool
