//go:build apiserver

package memcached

import (
	"context"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"example.com/fairlead/internal/kit/testkit"
)

// TestValidation: bad input is refused at the door, with a message that says
// what would be right.
func TestValidation(t *testing.T) {
	server := testkit.Server(t)
	ns := server.NewNamespace(t)
	c, err := client.New(server.Config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		spec string
		want string // "" if it is valid
	}{
		"the guide's":               {spec: "{size: 3}"},
		"nothing":                   {spec: "{}"},
		"no server":                 {spec: "{size: 0}"},
		"warm":                      {spec: "{identity: Stable, upgrade: Warm}"},
		"an image of one's own":     {spec: "{image: 'registry.example.com/cache@sha256:0'}"},
		"a variant":                 {spec: "{version: 1.6.38-alpine}"},
		"the least memory":          {spec: "{memory: 8Mi}"},
		"memory as a number":        {spec: "{memory: 67108864}"},
		"large items":               {spec: "{memory: 4Gi, maxItemSize: 1Gi}"},
		"more arguments":            {spec: "{extraArgs: ['-v', '-o', 'modern', '--disable-cas']}"},
		"users":                     {spec: "{auth: {secretName: who}}"},
		"an exporter with TLS":      {spec: "{metrics: {}, tls: {secretName: t}}"},
		"more in one argument":      {spec: "{extraArgs: ['-vvM', '-Bascii', '-n48', '-f1.05', '--listen-backlog=99', '--verbose']}"},
		"the largest pool":          {spec: "{size: 1000}"},
		"the most memory":           {spec: "{memory: 16Ti}"},
		"the least memory, warm":    {spec: "{identity: Stable, upgrade: Warm, memory: 39Mi}"},
		"too large a pool":          {spec: "{size: 2147483647}", want: "should be less than or equal to 1000"},
		"too little memory, warm":   {spec: "{identity: Stable, upgrade: Warm, memory: 38Mi}", want: "must be at least 39Mi with upgrade Warm"},
		"too much memory":           {spec: "{memory: 17Ti}", want: "must be at most 16Ti"},
		"memory beyond numbers":     {spec: "{memory: 100Ei}", want: "must be at most 16Ti"},
		"half a byte":               {spec: "{memory: 67108864500m}", want: "must be a whole number of mebibytes"},
		"items beyond numbers":      {spec: "{maxItemSize: 100Ei}", want: "must be a multiple of 512Ki"},
		"a bundle with memory":      {spec: "{extraArgs: ['-vm9']}", want: "use memory, maxConnections"},
		"a bundle with a port":      {spec: "{extraArgs: ['-rp11999']}", want: "use memory, maxConnections"},
		"an abbreviation":           {spec: "{extraArgs: ['--lis=0.0.0.0']}", want: "use memory, maxConnections"},
		"an abbreviation's value":   {spec: "{extraArgs: ['--memory-l', '9']}", want: "use memory, maxConnections"},
		"nothing but dashes":        {spec: "{extraArgs: ['--']}", want: "use memory, maxConnections"},
		"a server that ends":        {spec: "{extraArgs: ['-V']}", want: "use memory, maxConnections"},
		"no Secret's name":          {spec: "{auth: {secretName: 'my/users'}}", want: "must be the name of a Secret"},
		"no certificate's name":     {spec: "{tls: {secretName: My_Cert}}", want: "must be the name of a Secret"},
		"extstore, cold":            {spec: "{extraArgs: ['-o', 'ext_path=/data/x:1G']}"},
		"negative size":             {spec: "{size: -1}", want: "should be greater than or equal to 0"},
		"half a server":             {spec: "{size: 1.5}", want: "must be of type integer"},
		"another identity":          {spec: "{identity: Sticky}", want: "Unsupported value"},
		"warm without names":        {spec: "{upgrade: Warm}", want: "Warm needs identity Stable"},
		"no version":                {spec: "{version: latest}", want: "must be a version of memcached with three numbers"},
		"an image with spaces":      {spec: "{image: 'a b'}", want: "must be the name of an image, without spaces"},
		"too little memory":         {spec: "{memory: 4Mi}", want: "must be at least 8Mi"},
		"memory in bytes":           {spec: "{memory: 64M}", want: "must be a whole number of mebibytes"},
		"negative memory":           {spec: "{memory: -64Mi}", want: "must be at least 8Mi"},
		"items of an odd size":      {spec: "{maxItemSize: 700Ki}", want: "must be a multiple of 512Ki"},
		"items larger than 1Gi":     {spec: "{memory: 8Gi, maxItemSize: 2Gi}", want: "must be a multiple of 512Ki, and 1Gi at most"},
		"items as large as memory":  {spec: "{memory: 8Mi, maxItemSize: 8Mi}", want: "must be at most half of memory"},
		"no threads":                {spec: "{threads: 0}", want: "should be greater than or equal to 1"},
		"too few connections":       {spec: "{maxConnections: 10}", want: "should be greater than or equal to 64"},
		"a port of root's":          {spec: "{port: 80}", want: "should be greater than or equal to 1024"},
		"memory as an argument":     {spec: "{extraArgs: ['-m', '64']}", want: "use memory, maxConnections"},
		"memory as one argument":    {spec: "{extraArgs: ['-m64']}", want: "use memory, maxConnections"},
		"memory as a long argument": {spec: "{extraArgs: ['--memory-limit=64']}", want: "use memory, maxConnections"},
		"warm with extstore":        {spec: "{identity: Stable, upgrade: Warm, extraArgs: ['-o', 'ext_path=/data/x:1G']}", want: "cannot be kept through a restart"},
		"auth without a Secret":     {spec: "{auth: {}}", want: "spec.auth.secretName: Required value"},
		"an exporter with users":    {spec: "{metrics: {}, auth: {secretName: who}}", want: "the exporter cannot log in"},
		"an exporter on the port":   {spec: "{metrics: {port: 11211}}", want: "must be another port than memcached's"},
		"pods that end":             {spec: "{podTemplate: {spec: {restartPolicy: Never}}}", want: "must be Always or left out"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			mc := &unstructured.Unstructured{Object: map[string]any{}}
			if err := yaml.Unmarshal([]byte("{apiVersion: cache.example.com/v1alpha1, kind: Memcached, metadata: {generateName: m-}, spec: "+tc.spec+"}"), &mc.Object); err != nil {
				t.Fatal(err)
			}
			mc.SetNamespace(ns)
			err := c.Create(context.Background(), mc, client.DryRunAll)
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tc.want != "" && err == nil:
				t.Errorf("accepted, want an error with %q", tc.want)
			case tc.want != "" && !strings.Contains(err.Error(), tc.want):
				t.Errorf("refused with %v, want %q", err, tc.want)
			}
		})
	}
}
