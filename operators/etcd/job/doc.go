// Package job makes the pods in which package agent does its tasks, and reads from their status what
// became of them. Everything in it is pure.
//
// One pod is one try: it is never started again, and its name says which try it is. It has no API
// token, meets the restricted Pod Security Standard, and has none of the labels by which users
// select members. A Secret that does not exist keeps no pod from starting: the agent then says that
// the credentials are missing.
package job
