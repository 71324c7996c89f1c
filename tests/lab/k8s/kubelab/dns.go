package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"time"

	"golang.org/x/net/dns/dnsmessage"
	"k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// The lab has no kube-proxy, so a service's name stands for the addresses of its pods themselves: that serves as
// long as a service listens on the port its pods listen on.
type names struct {
	api     kubernetes.Interface
	cluster netip.Addr // of the API server, as pods know it
}

// serveNames answers queries for SERVICE.NAMESPACE.svc until it is killed: dns KUBECONFIG LISTEN CLUSTER-ADDRESS.
func serveNames(arguments []string) error {
	if len(arguments) != 3 {
		return errors.New("wants KUBECONFIG LISTEN CLUSTER-ADDRESS")
	}
	config, err := clientcmd.BuildConfigFromFlags("", arguments[0])
	if err != nil {
		return err
	}
	api, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	cluster, err := netip.ParseAddr(arguments[2])
	if err != nil {
		return err
	}
	socket, err := net.ListenPacket("udp4", arguments[1])
	if err != nil {
		return err
	}
	known := names{api, cluster}
	buffer := make([]byte, 1500)
	for {
		size, from, err := socket.ReadFrom(buffer)
		if err != nil {
			return err
		}
		var query dnsmessage.Message
		if err := query.Unpack(buffer[:size]); err != nil || len(query.Questions) != 1 {
			continue
		}
		go func() {
			if err := reply(socket, from, known.answer(query)); err != nil {
				fmt.Fprintln(os.Stderr, err)
			}
		}()
	}
}

func reply(socket net.PacketConn, to net.Addr, message dnsmessage.Message) error {
	packed, err := message.Pack()
	if err != nil {
		return err
	}
	_, err = socket.WriteTo(packed, to)
	return err
}

func (known names) answer(query dnsmessage.Message) dnsmessage.Message {
	question := query.Questions[0]
	header := dnsmessage.Header{ID: query.ID, Response: true, Authoritative: true, RecursionDesired: query.RecursionDesired}
	message := dnsmessage.Message{Header: header, Questions: query.Questions}
	found, err := known.lookUp(question.Name.String())
	if err != nil {
		message.RCode = dnsmessage.RCodeNameError
		return message
	}
	for _, address := range found {
		if question.Type == dnsmessage.TypeA && address.Is4() {
			head := dnsmessage.ResourceHeader{Name: question.Name, Class: dnsmessage.ClassINET, TTL: 1}
			message.Answers = append(message.Answers, dnsmessage.Resource{Header: head, Body: &dnsmessage.AResource{A: address.As4()}})
		}
	}
	return message
}

func (known names) lookUp(name string) ([]netip.Addr, error) {
	labels := strings.Split(strings.ToLower(name), ".")
	if len(labels) < 3 || labels[2] != "svc" {
		return nil, errors.New("no name of a service")
	}
	service, namespace := labels[0], labels[1]
	if service == "kubernetes" && namespace == "default" {
		return []netip.Addr{known.cluster}, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	chosen := v1.ListOptions{LabelSelector: "kubernetes.io/service-name=" + service}
	slices, err := known.api.DiscoveryV1().EndpointSlices(namespace).List(ctx, chosen)
	if err != nil {
		return nil, err
	}
	var found []netip.Addr
	for _, slice := range slices.Items {
		for _, endpoint := range slice.Endpoints {
			for _, text := range endpoint.Addresses {
				if address, err := netip.ParseAddr(text); err == nil {
					found = append(found, address)
				}
			}
		}
	}
	if len(found) == 0 {
		return nil, errors.New("no such service, or nothing behind it yet")
	}
	return found, nil
}
