package webserver

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	webv1 "example.com/fairlead/api/web/v1"
)

const (
	// maxLabel is how long a label's value and a Service's name may be.
	maxLabel = 63
	// maxName leaves room for what Kubernetes and this operator append.
	maxName    = 230
	hashLength = 10

	serviceSuffix = "-service"
)

// serviceNames are the names that a Service may have.
var serviceNames = regexp.MustCompile(`^[a-z]([-a-z0-9]*[a-z0-9])?$`)

// childName is the name of the Deployment and of the other children, but for
// the Service.
func childName(ws *webv1.WebServer) string { return bounded(ws.Name, maxName) }

// serviceName is <name>-service, if a Service may have that name.
func serviceName(ws *webv1.WebServer) string {
	name := ws.Name
	if !serviceNames.MatchString(name) {
		name = "w-" + strings.ReplaceAll(name, ".", "-") + "-" + hash(name)
	}
	return bounded(name, maxLabel-len(serviceSuffix)) + serviceSuffix
}

// labelValue is the name of a WebServer as the value of a label.
func labelValue(name string) string { return bounded(name, maxLabel) }

// bounded is name if it is no longer than limit, and otherwise its beginning
// with a hash of the whole.
func bounded(name string, limit int) string {
	if len(name) <= limit {
		return name
	}
	return strings.TrimRight(name[:limit-hashLength-1], "-.") + "-" + hash(name)
}

func hash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])[:hashLength]
}

func key(ws *webv1.WebServer) types.NamespacedName {
	return types.NamespacedName{Namespace: ws.Namespace, Name: ws.Name}
}
