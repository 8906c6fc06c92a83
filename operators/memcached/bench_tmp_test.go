package memcached

import (
	"os"
	"strconv"
	"testing"
)

func TestTmpBench(t *testing.T) {
	n, _ := strconv.Atoi(os.Getenv("N"))
	s := simulation(t)
	for _, sc := range stories(simulatedRestarts{}) {
		if sc.Name == os.Getenv("STORY") {
			for i := range n {
				s.Again(t, sc, "meddling"+strconv.Itoa(i%200+1)+"=1,delay7=2,fate"+strconv.Itoa(i%40+1)+"=1")
			}
		}
	}
}
