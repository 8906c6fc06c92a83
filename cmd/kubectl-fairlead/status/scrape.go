package status

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	cachev1alpha1 "example.com/fairlead/api/cache/v1alpha1"
	etcdv1beta2 "example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/cmd/kubectl-fairlead/cli"
)

// etcdMetricsPort is where a member serves metrics, without TLS.
const etcdMetricsPort = 2381

// patienceScrape bounds one request to a server.
const patienceScrape = 3 * time.Second

type families map[string]*dto.MetricFamily

// scrape reads a pod's metrics, through the API server.
func (b *beside) scrape(ctx context.Context, namespace, pod string, port int32) (families, error) {
	ctx, stop := context.WithTimeout(ctx, patienceScrape)
	defer stop()
	text, err := b.core.Pods(namespace).ProxyGet("http", pod, strconv.Itoa(int(port)), "/metrics", nil).DoRaw(ctx)
	if err != nil {
		return nil, err
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	return parser.TextToMetricFamilies(bytes.NewReader(text))
}

// sum is that of a metric's values, of those with these labels.
func (f families) sum(name string, labels ...string) float64 {
	var sum float64
	for _, m := range f[name].GetMetric() {
		has := map[string]string{}
		for _, l := range m.GetLabel() {
			has[l.GetName()] = l.GetValue()
		}
		isIt := true
		for i := 0; i+1 < len(labels); i += 2 {
			isIt = isIt && has[labels[i]] == labels[i+1]
		}
		if isIt {
			sum += m.GetGauge().GetValue() + m.GetCounter().GetValue() + m.GetUntyped().GetValue()
		}
	}
	return sum
}

// members is what the members say themselves: their operator puts little of it into status, and that now and then.
func (b *beside) members(ctx context.Context, p *cli.Page, o *etcdv1beta2.EtcdCluster) {
	answers := map[string]families{}
	var committed float64
	for _, m := range o.Status.MemberList {
		got, err := b.scrape(ctx, o.Namespace, m.Name, etcdMetricsPort)
		if apierrors.IsForbidden(err) {
			unknown(p, "lag", "get pods/proxy", err)
			return
		}
		if err == nil {
			answers[m.Name] = got
			committed = max(committed, got.sum("etcd_server_proposals_committed_total"))
		}
	}
	word := "lag"
	for _, m := range o.Status.MemberList {
		a := answers[m.Name]
		if a == nil {
			p.Add(word, "%s: unknown: it does not answer", m.Name)
			word = ""
			continue
		}
		text := fmt.Sprintf("%.0f of %.0f entries behind", max(committed-a.sum("etcd_server_proposals_applied_total"), 0), committed)
		size, quota := a.sum("etcd_mvcc_db_total_size_in_bytes"), a.sum("etcd_server_quota_backend_bytes")
		text += fmt.Sprintf("; database %s, %s of it used", cli.Size(size), cli.Size(a.sum("etcd_mvcc_db_total_size_in_use_in_bytes")))
		if quota > 0 {
			text += fmt.Sprintf(", %.0f%% of the quota of %s", 100*size/quota, cli.Size(quota))
		}
		p.Add(word, "%s: %s", m.Name, text)
		word = ""
	}
}

// items is what the exporters beside the servers say.
func (b *beside) items(ctx context.Context, p *cli.Page, o *cachev1alpha1.Memcached) {
	if o.Spec.Metrics == nil {
		p.Add("items", "unknown without spec.metrics")
		return
	}
	pods, err := b.core.Pods(o.Namespace).List(ctx, metav1.ListOptions{LabelSelector: o.Status.Selector})
	if err != nil {
		unknown(p, "items", "list pods", err)
		return
	}
	var silent []string
	var answers []families
	for _, pod := range pods.Items {
		got, err := b.scrape(ctx, o.Namespace, pod.Name, o.Spec.Metrics.Port)
		if apierrors.IsForbidden(err) {
			unknown(p, "items", "get pods/proxy", err)
			return
		}
		if err != nil {
			silent = append(silent, pod.Name)
			continue
		}
		answers = append(answers, got)
	}
	sum := func(name string, labels ...string) (sum float64) {
		for _, a := range answers {
			sum += a.sum(name, labels...)
		}
		return sum
	}
	if len(answers) > 0 {
		p.Add("items", "%.0f, %s in all; evicted so far: %.0f", sum("memcached_current_items"), cli.Size(sum("memcached_current_bytes")),
			sum("memcached_items_evicted_total"))
	}
	gets := func(status string) float64 {
		return sum("memcached_commands_total", "command", "get", "status", status)
	}
	hits, misses := gets("hit"), gets("miss")
	if hits+misses > 0 {
		p.Add("hits", "%.1f%% of %.0f gets since the servers started", 100*hits/(hits+misses), hits+misses)
	}
	if len(silent) > 0 {
		p.Add("", "no answer from the exporter of %s", strings.Join(silent, ", "))
	}
}
