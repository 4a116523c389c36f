// An identity provider for tests, on a free port of 127.0.0.1: `node provider.mjs MODULES ALGORITHM CERTIFICATE KEY`, where
// MODULES is the folder `node_modules`. Prints its address once it listens. Users choose their id: it is the name that they
// log in with.

import { generateKeyPairSync } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';

const [modules, algorithm, certificate, privateKey] = process.argv.slice(2);
const { default: Provider } = await import(`${modules}/oidc-provider/lib/index.js`);

const RESOURCE = 'https://keywright.example';

const jwk = (type, options, alg) => ({
  ...generateKeyPairSync(type, options).privateKey.export({ format: 'jwk' }),
  kid: alg,
  alg,
  use: 'sig',
});

const client = (client_id, token_endpoint_auth_method) => ({
  client_id,
  client_secret: `${client_id}-secret: 100% + &=`,
  token_endpoint_auth_method,
  grant_types: ['client_credentials'],
  response_types: [],
  redirect_uris: [],
});

const configuration = {
  clients: [
    client('ci', 'client_secret_basic'),
    client('backup', 'client_secret_post'),
    {
      client_id: 'cli',
      application_type: 'native',
      token_endpoint_auth_method: 'none',
      grant_types: [
        'authorization_code',
        'refresh_token',
        'urn:ietf:params:oauth:grant-type:device_code',
      ],
      response_types: ['code'],
      redirect_uris: ['http://127.0.0.1/callback'],
    },
    {
      client_id: 'console',
      client_secret: 'console-secret: 100% + &=',
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      redirect_uris: ['https://127.0.0.1/console/callback'],
    },
  ],
  jwks: {
    keys: [jwk('rsa', { modulusLength: 2048 }, 'RS256'), jwk('ec', { namedCurve: 'P-256' }, 'ES256')],
  },
  cookies: { keys: ['only for tests'] },
  features: {
    clientCredentials: { enabled: true },
    deviceFlow: { enabled: true },
    revocation: { enabled: true },
    resourceIndicators: {
      enabled: true,
      useGrantedResource: () => true,
      getResourceServerInfo: () => ({
        scope: 'credhub.read credhub.write',
        audience: RESOURCE,
        accessTokenFormat: 'jwt',
        jwt: { sign: { alg: algorithm } },
      }),
    },
  },
  issueRefreshToken: async () => true,
  ttl: { AccessToken: 600, ClientCredentials: 600 },
};

const server = createServer({ cert: readFileSync(certificate), key: readFileSync(privateKey) });
server.listen(0, '127.0.0.1', () => {
  const issuer = `https://127.0.0.1:${server.address().port}`;
  const provider = new Provider(issuer, configuration);
  // The server under test chooses its port later.
  const { prototype } = provider.Client;
  const allowed = prototype.redirectUriAllowed;
  prototype.redirectUriAllowed = function (uri) {
    return allowed.call(this, this.clientId === 'console' ? uri.replace(/:\d+\//, '/') : uri);
  };
  provider.on('server_error', (_context, error) => console.error(error));
  server.on('request', provider.callback());
  console.log(issuer);
});
