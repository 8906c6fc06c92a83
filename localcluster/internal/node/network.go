package node

import (
	"fmt"
	"net"
	"os"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

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
	link, err := netlink.LinkByName(spec.Link)
	if err != nil {
		return fmt.Errorf("find %s: %w", spec.Link, err)
	}
	address := &net.IPNet{IP: spec.NodeIP.AsSlice(), Mask: net.CIDRMask(spec.LinkBits, 32)}
	if err := netlink.AddrAdd(link, &netlink.Addr{IPNet: address}); err != nil {
		return fmt.Errorf("give %s the address %s: %w", spec.Link, address, err)
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return fmt.Errorf("set %s up: %w", spec.Link, err)
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
