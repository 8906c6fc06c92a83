package node

import (
	"fmt"
	"net"
	"os"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"example.com/fairlead/localcluster/internal/host"
)

// The first node has a bridge, on which are the device that leads to the host
// and one that leads to each further node. So all of them and the host are in
// one network, and reach each other's pods by routes.
const bridgeName = "nodes"

// setUpNetwork gives the node its address and its routes. There is no way out
// of the cluster other than to the host: a connection to anything else is
// refused at once, which is quicker than waiting for an answer that cannot
// come.
func setUpNetwork(spec Spec) error {
	for file, value := range map[string]string{
		"/proc/sys/net/ipv4/ip_forward":              "1",
		"/proc/sys/net/ipv4/conf/all/rp_filter":      "0",
		"/proc/sys/net/ipv4/ip_local_port_range":     "32768 60999", // NodePorts are below
		"/proc/sys/net/ipv6/conf/all/disable_ipv6":   "1",           // one family is enough, and no router will answer
		"/proc/sys/net/ipv4/conf/all/route_localnet": "0",
		// What the bridge carries between others is not for this node's rules.
		"/proc/sys/net/bridge/bridge-nf-call-iptables": "0",
	} {
		if err := os.WriteFile(file, []byte(value), 0o644); err != nil && !os.IsNotExist(err) {
			return err
		}
	}
	loopback, err := netlink.LinkByName("lo")
	if err != nil {
		return err
	}
	if err := netlink.LinkSetUp(loopback); err != nil {
		return fmt.Errorf("set the loopback device up: %w", err)
	}
	if spec.Link == bridgeName {
		if err := makeBridge(host.NodeLink); err != nil {
			return err
		}
	}
	link, err := netlink.LinkByName(spec.Link)
	if err != nil {
		return fmt.Errorf("find %s: %w", spec.Link, err)
	}
	address := &net.IPNet{IP: spec.self().IP.AsSlice(), Mask: net.CIDRMask(spec.LinkBits, 32)}
	if err := netlink.AddrAdd(link, &netlink.Addr{IPNet: address}); err != nil {
		return fmt.Errorf("give %s the address %s: %w", spec.Link, address, err)
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return fmt.Errorf("set %s up: %w", spec.Link, err)
	}
	return addRoutes(spec, link)
}

// makeBridge makes the bridge of the first node, with a device on it.
func makeBridge(device string) error {
	link, err := netlink.LinkByName(device)
	if err != nil {
		return fmt.Errorf("find %s: %w", device, err)
	}
	attributes := netlink.NewLinkAttrs()
	// Or it would be that of a device on it, and change with them.
	attributes.Name, attributes.HardwareAddr = bridgeName, link.Attrs().HardwareAddr
	if err := netlink.LinkAdd(&netlink.Bridge{LinkAttrs: attributes}); err != nil {
		return fmt.Errorf("make a bridge: %w%s", err, host.MissingModule(err, "bridge"))
	}
	return plug(device)
}

// plug puts a device on the bridge.
func plug(device string) error {
	link, err := netlink.LinkByName(device)
	if err != nil {
		return fmt.Errorf("find %s: %w", device, err)
	}
	bridge, err := netlink.LinkByName(bridgeName)
	if err != nil {
		return fmt.Errorf("find %s: %w", bridgeName, err)
	}
	if err := netlink.LinkSetMaster(link, bridge); err != nil {
		return fmt.Errorf("put %s on the bridge: %w", device, err)
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return fmt.Errorf("set %s up: %w", device, err)
	}
	return nil
}

func addRoutes(spec Spec, link netlink.Link) error {
	for _, other := range spec.Nodes {
		if other.Name == spec.self().Name {
			continue
		}
		pods := &net.IPNet{IP: other.Pods.Addr().AsSlice(), Mask: net.CIDRMask(other.Pods.Bits(), 32)}
		if err := netlink.RouteAdd(&netlink.Route{LinkIndex: link.Attrs().Index, Dst: pods, Gw: other.IP.AsSlice()}); err != nil {
			return fmt.Errorf("add the route to the pods of %s: %w", other.Name, err)
		}
	}
	// Service addresses are nowhere: kube-proxy's rules replace them. But the
	// node's own connections look for a route first.
	_, services, err := net.ParseCIDR(serviceNet)
	if err != nil {
		return err
	}
	err = netlink.RouteAdd(&netlink.Route{LinkIndex: link.Attrs().Index, Dst: services, Scope: netlink.SCOPE_LINK})
	if err != nil {
		return fmt.Errorf("add the route to services: %w", err)
	}
	everywhere := &net.IPNet{IP: net.IPv4zero, Mask: net.CIDRMask(0, 32)}
	err = netlink.RouteAdd(&netlink.Route{Dst: everywhere, Type: unix.RTN_UNREACHABLE})
	if err != nil {
		return fmt.Errorf("close the way out: %w", err)
	}
	return nil
}
