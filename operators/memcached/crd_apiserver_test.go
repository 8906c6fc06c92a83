//go:build apiserver

package memcached

import (
	"testing"

	"example.com/fairlead/api/cache/v1alpha1"
	"example.com/fairlead/internal/testkit"
)

// TestValidation: bad input is refused at the door, with a message that says
// what would be right.
func TestValidation(t *testing.T) {
	testkit.CheckSpecs(t, map[string]testkit.SpecCase{
		"the tutorial's":            {Spec: "size: 3"},
		"nothing":                   {Spec: ""},
		"no server":                 {Spec: "size: 0"},
		"warm":                      {Spec: "identity: Stable, upgrade: Warm"},
		"an image of one's own":     {Spec: "image: 'registry.example.com/cache@sha256:0'"},
		"a variant":                 {Spec: "version: 1.6.38-alpine"},
		"the least memory":          {Spec: "memory: 8Mi"},
		"memory as a number":        {Spec: "memory: 67108864"},
		"large items":               {Spec: "memory: 4Gi, maxItemSize: 1Gi"},
		"more arguments":            {Spec: "extraArgs: ['-v', '-o', 'modern', '--disable-cas']"},
		"users":                     {Spec: "auth: {secretName: who}"},
		"an exporter with TLS":      {Spec: "metrics: {}, tls: {secretName: t}"},
		"more in one argument":      {Spec: "extraArgs: ['-vvM', '-Bascii', '-n48', '-f1.05', '--listen-backlog=99', '--verbose']"},
		"the largest pool":          {Spec: "size: 1000"},
		"the most memory":           {Spec: "memory: 16Ti"},
		"the least memory, warm":    {Spec: "identity: Stable, upgrade: Warm, memory: 39Mi"},
		"too large a pool":          {Spec: "size: 2147483647", Want: "should be less than or equal to 1000"},
		"too little memory, warm":   {Spec: "identity: Stable, upgrade: Warm, memory: 38Mi", Want: "must be at least 39Mi with upgrade Warm"},
		"too much memory":           {Spec: "memory: 17Ti", Want: "must be at most 16Ti"},
		"memory beyond numbers":     {Spec: "memory: 100Ei", Want: "must be at most 16Ti"},
		"half a byte":               {Spec: "memory: 67108864500m", Want: "must be a whole number of mebibytes"},
		"items beyond numbers":      {Spec: "maxItemSize: 100Ei", Want: "must be a multiple of 512Ki"},
		"a bundle with memory":      {Spec: "extraArgs: ['-vm9']", Want: "use memory, maxConnections"},
		"a bundle with a port":      {Spec: "extraArgs: ['-rp11999']", Want: "use memory, maxConnections"},
		"an abbreviation":           {Spec: "extraArgs: ['--lis=0.0.0.0']", Want: "use memory, maxConnections"},
		"an abbreviation's value":   {Spec: "extraArgs: ['--memory-l', '9']", Want: "use memory, maxConnections"},
		"nothing but dashes":        {Spec: "extraArgs: ['--']", Want: "use memory, maxConnections"},
		"a server that ends":        {Spec: "extraArgs: ['-V']", Want: "use memory, maxConnections"},
		"no Secret's name":          {Spec: "auth: {secretName: 'my/users'}", Want: "must be the name of a Secret"},
		"no certificate's name":     {Spec: "tls: {secretName: My_Cert}", Want: "must be the name of a Secret"},
		"extstore, cold":            {Spec: "extraArgs: ['-o', 'ext_path=/data/x:1G']"},
		"negative size":             {Spec: "size: -1", Want: "should be greater than or equal to 0"},
		"half a server":             {Spec: "size: 1.5", Want: "must be of type integer"},
		"another identity":          {Spec: "identity: Sticky", Want: "Unsupported value"},
		"warm without names":        {Spec: "upgrade: Warm", Want: "Warm needs identity Stable"},
		"no version":                {Spec: "version: latest", Want: "must be a version of memcached with three numbers"},
		"an image with spaces":      {Spec: "image: 'a b'", Want: "must be the name of an image, without spaces"},
		"too little memory":         {Spec: "memory: 4Mi", Want: "must be at least 8Mi"},
		"memory in bytes":           {Spec: "memory: 64M", Want: "must be a whole number of mebibytes"},
		"negative memory":           {Spec: "memory: -64Mi", Want: "must be at least 8Mi"},
		"items of an odd size":      {Spec: "maxItemSize: 700Ki", Want: "must be a multiple of 512Ki"},
		"items larger than 1Gi":     {Spec: "memory: 8Gi, maxItemSize: 2Gi", Want: "must be a multiple of 512Ki, and 1Gi at most"},
		"items as large as memory":  {Spec: "memory: 8Mi, maxItemSize: 8Mi", Want: "must be at most half of memory"},
		"no threads":                {Spec: "threads: 0", Want: "should be greater than or equal to 1"},
		"too few connections":       {Spec: "maxConnections: 10", Want: "should be greater than or equal to 64"},
		"a port of root's":          {Spec: "port: 80", Want: "should be greater than or equal to 1024"},
		"memory as an argument":     {Spec: "extraArgs: ['-m', '64']", Want: "use memory, maxConnections"},
		"memory as one argument":    {Spec: "extraArgs: ['-m64']", Want: "use memory, maxConnections"},
		"memory as a long argument": {Spec: "extraArgs: ['--memory-limit=64']", Want: "use memory, maxConnections"},
		"warm with extstore":        {Spec: "identity: Stable, upgrade: Warm, extraArgs: ['-o', 'ext_path=/data/x:1G']", Want: "cannot be kept through a restart"},
		"auth without a Secret":     {Spec: "auth: {}", Want: "spec.auth.secretName: Required value"},
		"an exporter with users":    {Spec: "metrics: {}, auth: {secretName: who}", Want: "the exporter cannot log in"},
		"an exporter on the port":   {Spec: "metrics: {port: 11211}", Want: "must be another port than memcached's"},
		"pods that end":             {Spec: "podTemplate: {spec: {restartPolicy: Never}}", Want: "must be Always or left out"},
	}, v1alpha1.GroupVersion.WithKind("Memcached"))
}
