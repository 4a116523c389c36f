// A program that creates Secrets from manifests for the External Secrets Operator. The operator's own packages generate the
// tokens and read the credentials.
//
//	kubernetes FOLDER SERVER CA_FILE CLIENT_SECRET
//
// It prints the Secrets as JSON.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	esv1 "github.com/external-secrets/external-secrets/apis/externalsecrets/v1"
	"github.com/external-secrets/external-secrets/pkg/generator/webhook"
	provider "github.com/external-secrets/external-secrets/pkg/provider/webhook"
	corev1 "k8s.io/api/core/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	if len(arguments) != 4 {
		return fmt.Errorf("usage: kubernetes FOLDER SERVER CA_FILE CLIENT_SECRET")
	}
	ca, err := os.ReadFile(arguments[2])
	if err != nil {
		return err
	}
	cluster, err := load(arguments[0], arguments[1])
	if err != nil {
		return err
	}
	if err := cluster.replacePlaceholders(string(ca), arguments[3]); err != nil {
		return err
	}
	// Tokens first, because stores use them.
	for _, isGenerated := range []bool{true, false} {
		for _, externalSecret := range cluster.externalSecrets {
			if isFromGenerator(externalSecret) == isGenerated {
				if err := cluster.reconcile(externalSecret); err != nil {
					return fmt.Errorf("%s: %w", externalSecret.Name, err)
				}
			}
		}
	}
	if err := cluster.reconcileByClusterStores(); err != nil {
		return err
	}
	return cluster.print()
}

// reconcileByClusterStores creates the Secrets in the other namespaces that may use a ClusterSecretStore.
func (cluster *cluster) reconcileByClusterStores() error {
	for _, store := range cluster.stores {
		for _, condition := range store.GetSpec().Conditions {
			for _, namespace := range condition.Namespaces {
				if err := cluster.copyTo(namespace, store); err != nil {
					return fmt.Errorf("%s: %w", namespace, err)
				}
			}
		}
	}
	return nil
}

// copyTo creates the Secrets of all ExternalSecrets of other namespaces in a namespace, through a ClusterSecretStore.
func (cluster *cluster) copyTo(namespace string, store esv1.GenericStore) error {
	for _, externalSecret := range cluster.externalSecrets {
		if externalSecret.Namespace == namespace || isFromGenerator(externalSecret) {
			continue
		}
		copied := externalSecret.DeepCopy()
		copied.Namespace = namespace
		copied.Spec.SecretStoreRef = esv1.SecretStoreRef{Kind: esv1.ClusterSecretStoreKind, Name: store.GetName()}
		if err := cluster.reconcile(copied); err != nil {
			return err
		}
	}
	return nil
}

// replacePlaceholders sets the two values that users of the manifests must set.
func (cluster *cluster) replacePlaceholders(ca, clientSecret string) error {
	const placeholder = "REPLACE-ME"
	replaced := 0
	for _, configMap := range cluster.configMaps {
		for key, value := range configMap.Data {
			if value == placeholder {
				configMap.Data[key] = ca
				replaced++
			}
		}
	}
	for _, secret := range cluster.secrets {
		for key, value := range secret.Data {
			if string(value) == placeholder {
				secret.Data[key] = []byte(clientSecret)
				replaced++
			}
		}
	}
	if replaced != 2 {
		return fmt.Errorf("%d placeholders in the manifests, not 2", replaced)
	}
	return nil
}

func isFromGenerator(externalSecret *esv1.ExternalSecret) bool {
	for _, from := range externalSecret.Spec.DataFrom {
		if from.SourceRef != nil && from.SourceRef.GeneratorRef != nil {
			return true
		}
	}
	return false
}

// reconcile creates the Secret of an ExternalSecret.
func (cluster *cluster) reconcile(externalSecret *esv1.ExternalSecret) error {
	data, err := cluster.read(externalSecret)
	if err != nil {
		return err
	}
	target := externalSecret.Spec.Target
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: target.Name, Namespace: externalSecret.Namespace},
		Type:       corev1.SecretTypeOpaque,
		Data:       data,
	}
	if secret.Name == "" {
		secret.Name = externalSecret.Name
	}
	if template := target.Template; template != nil {
		secret.Labels = template.Metadata.Labels
		if template.Type != "" {
			secret.Type = template.Type
		}
	}
	cluster.secrets[client.ObjectKeyFromObject(secret)] = secret
	return nil
}

// read returns the data of an ExternalSecret, from generators and from a store.
func (cluster *cluster) read(externalSecret *esv1.ExternalSecret) (map[string][]byte, error) {
	ctx := context.Background()
	namespace := externalSecret.Namespace
	data := map[string][]byte{}
	for _, from := range externalSecret.Spec.DataFrom {
		var fields map[string][]byte
		var err error
		if from.Extract != nil {
			var store esv1.SecretsClient
			if store, err = cluster.open(ctx, externalSecret.Spec.SecretStoreRef, namespace); err == nil {
				fields, err = store.GetSecretMap(ctx, *from.Extract)
			}
		} else {
			fields, err = cluster.generate(ctx, from.SourceRef.GeneratorRef, namespace)
		}
		if err != nil {
			return nil, err
		}
		for key, value := range fields {
			data[key] = value
		}
	}
	for _, from := range externalSecret.Spec.Data {
		store, err := cluster.open(ctx, externalSecret.Spec.SecretStoreRef, namespace)
		if err != nil {
			return nil, err
		}
		if data[from.SecretKey], err = store.GetSecret(ctx, from.RemoteRef); err != nil {
			return nil, fmt.Errorf("%s: %w", from.RemoteRef.Key, err)
		}
	}
	return data, nil
}

func (cluster *cluster) generate(ctx context.Context, ref *esv1.GeneratorRef, namespace string) (map[string][]byte, error) {
	generator, ok := cluster.generators[client.ObjectKey{Namespace: namespace, Name: ref.Name}]
	if !ok {
		return nil, fmt.Errorf("the generator %s does not exist", ref.Name)
	}
	text, err := json.Marshal(generator)
	if err != nil {
		return nil, err
	}
	fields, _, err := (&webhook.Webhook{}).Generate(ctx, &apiextensions.JSON{Raw: text}, cluster, namespace)
	return fields, err
}

// open validates a store and returns its client.
func (cluster *cluster) open(ctx context.Context, ref esv1.SecretStoreRef, namespace string) (esv1.SecretsClient, error) {
	key := client.ObjectKey{Name: ref.Name}
	if ref.Kind == esv1.SecretStoreKind {
		key.Namespace = namespace
	}
	store, ok := cluster.stores[key]
	if !ok {
		return nil, fmt.Errorf("the %s %s does not exist", ref.Kind, ref.Name)
	}
	opened, err := (&provider.Provider{}).NewClient(ctx, store, cluster, namespace)
	if err != nil {
		return nil, err
	}
	if _, err := opened.Validate(); err != nil {
		return nil, err
	}
	return opened, nil
}

// print writes the Secrets as JSON, by namespace and name.
func (cluster *cluster) print() error {
	type secret struct {
		Type string            `json:"type"`
		Data map[string]string `json:"data"`
	}
	printed := map[string]secret{}
	for key, found := range cluster.secrets {
		data := map[string]string{}
		for name, value := range found.Data {
			data[name] = string(value)
		}
		printed[key.String()] = secret{Type: string(found.Type), Data: data}
	}
	return json.NewEncoder(os.Stdout).Encode(printed)
}
