package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	esv1 "github.com/external-secrets/external-secrets/apis/externalsecrets/v1"
	genv1alpha1 "github.com/external-secrets/external-secrets/apis/generators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// cluster holds the objects of a cluster in memory. The operator's packages only call Get.
type cluster struct {
	client.Client
	secrets         map[client.ObjectKey]*corev1.Secret
	configMaps      map[client.ObjectKey]*corev1.ConfigMap
	generators      map[client.ObjectKey]*genv1alpha1.Webhook
	stores          map[client.ObjectKey]esv1.GenericStore
	namespaces      map[string]bool
	externalSecrets []*esv1.ExternalSecret
}

// load reads the manifests in a folder, with another address of the server.
func load(folder, server string) (*cluster, error) {
	loaded := &cluster{
		secrets:    map[client.ObjectKey]*corev1.Secret{},
		configMaps: map[client.ObjectKey]*corev1.ConfigMap{},
		generators: map[client.ObjectKey]*genv1alpha1.Webhook{},
		stores:     map[client.ObjectKey]esv1.GenericStore{},
		namespaces: map[string]bool{},
	}
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		text = bytes.ReplaceAll(text, []byte("https://keywright.example:8844"), []byte(server))
		for _, document := range strings.Split(string(text), "\n---\n") {
			if err := loaded.apply([]byte(document)); err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
		}
	}
	return loaded, loaded.checkNamespaces()
}

// apply adds an object. Fields that its type does not have are errors.
func (cluster *cluster) apply(document []byte) error {
	var header metav1.TypeMeta
	if err := yaml.Unmarshal(document, &header); err != nil {
		return err
	}
	switch header.APIVersion + " " + header.Kind {
	case "v1 Namespace":
		namespace, err := decode[corev1.Namespace](document)
		cluster.namespaces[namespace.Name] = true
		return err
	case "v1 Secret":
		secret, err := decode[corev1.Secret](document)
		secret.Data = map[string][]byte{}
		for key, value := range secret.StringData {
			secret.Data[key] = []byte(value)
		}
		cluster.secrets[client.ObjectKeyFromObject(secret)] = secret
		return err
	case "v1 ConfigMap":
		configMap, err := decode[corev1.ConfigMap](document)
		cluster.configMaps[client.ObjectKeyFromObject(configMap)] = configMap
		return err
	case "generators.external-secrets.io/v1alpha1 Webhook":
		generator, err := decode[genv1alpha1.Webhook](document)
		cluster.generators[client.ObjectKeyFromObject(generator)] = generator
		return err
	case "external-secrets.io/v1 SecretStore":
		store, err := decode[esv1.SecretStore](document)
		cluster.stores[client.ObjectKeyFromObject(store)] = store
		return err
	case "external-secrets.io/v1 ClusterSecretStore":
		store, err := decode[esv1.ClusterSecretStore](document)
		cluster.stores[client.ObjectKeyFromObject(store)] = store
		return err
	case "external-secrets.io/v1 ExternalSecret":
		externalSecret, err := decode[esv1.ExternalSecret](document)
		cluster.externalSecrets = append(cluster.externalSecrets, externalSecret)
		return err
	}
	return fmt.Errorf("unknown kind: %s %s", header.APIVersion, header.Kind)
}

func decode[T any](document []byte) (*T, error) {
	object := new(T)
	return object, yaml.UnmarshalStrict(document, object)
}

// checkNamespaces returns an error if an object is in a namespace without a manifest.
func (cluster *cluster) checkNamespaces() error {
	var keys []client.ObjectKey
	for key := range cluster.secrets {
		keys = append(keys, key)
	}
	for key := range cluster.configMaps {
		keys = append(keys, key)
	}
	for key := range cluster.generators {
		keys = append(keys, key)
	}
	for key := range cluster.stores {
		keys = append(keys, key)
	}
	for _, externalSecret := range cluster.externalSecrets {
		keys = append(keys, client.ObjectKeyFromObject(externalSecret))
	}
	for _, key := range keys {
		// Cluster-wide objects have no namespace.
		if key.Namespace != "" && !cluster.namespaces[key.Namespace] {
			return fmt.Errorf("%s: there is no such namespace", key)
		}
	}
	return nil
}

// Get returns a Secret or a ConfigMap.
func (cluster *cluster) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	switch object := object.(type) {
	case *corev1.Secret:
		if found, ok := cluster.secrets[key]; ok {
			found.DeepCopyInto(object)
			return nil
		}
	case *corev1.ConfigMap:
		if found, ok := cluster.configMaps[key]; ok {
			found.DeepCopyInto(object)
			return nil
		}
	}
	return fmt.Errorf("%T %s does not exist", object, key)
}
