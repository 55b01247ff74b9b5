/** The configuration section `[mcp]`. */
import { headerSecret, httpUrl, secretText, whole } from '@sluice/sdk'
import * as v from 'valibot'

const described = <const Schema extends v.GenericSchema>(schema: Schema, text: string) => v.pipe(schema, v.description(text))
const text = v.pipe(v.string(), v.minLength(1))
const seconds = (from: number, to: number) => whole(from, to)

/** Two underscores separate the parts of a tool's name, so the name of a server has none in a row, at its start or at its end. */
const SERVER_NAME = /^(?=.{1,32}$)[A-Za-z0-9-]+(?:_[A-Za-z0-9-]+)*$/
const VARIABLE = v.pipe(v.string(), v.regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'must be the name of an environment variable'))
const RISK = v.picklist(['read', 'write', 'execute'])

const keys = v.object({
  enabled: v.optional(described(v.boolean(), 'Whether the server is used'), true),
  command: v.optional(described(text, 'The program of a server that runs on this machine')),
  args: v.optional(described(v.array(v.string()), 'The arguments of the program'), []),
  env: v.optional(
    described(v.record(VARIABLE, v.string()), 'Environment variables of the program in addition to PATH, HOME, TERM and LANG'),
    {},
  ),
  secret_env: v.optional(described(v.record(VARIABLE, secretText()), 'Environment variables whose values are secrets'), {}),
  network: v.optional(described(v.boolean(), 'Whether the program may use the network'), false),
  writable: v.optional(
    described(
      v.array(text),
      'Folders that the program may write to: absolute paths, or paths relative to the workspace, where "." is the workspace itself',
    ),
    [],
  ),
  url: v.optional(described(httpUrl(), 'The address of a server that is reached over streamable HTTP')),
  headers: v.optional(described(v.record(v.string(), headerSecret()), 'Request headers for that address, such as Authorization'), {}),
  oauth: v.optional(
    described(
      v.pipe(
        v.object({
          grant: v.optional(
            described(
              v.picklist(['authorization_code', 'client_credentials']),
              '"authorization_code": a person logs in with `sluice mcp login`. "client_credentials": the client itself is allowed in',
            ),
            'authorization_code',
          ),
          client_id: v.optional(described(text, 'The client that was registered for Sluice; absent: it registers itself')),
          client_secret: v.optional(described(secretText(), 'The secret of that client')),
          issuer: v.optional(
            described(
              httpUrl(),
              'The authorization server, the only one that the client asks for tokens; absent: the one that the server names first',
            ),
          ),
          scope: v.optional(described(text, 'The permissions to ask for, separated by blanks')),
        }),
        v.check(
          ({ grant, client_id, client_secret }) =>
            grant !== 'client_credentials' || (client_id !== undefined && client_secret !== undefined),
          'The grant "client_credentials" needs client_id and client_secret',
        ),
      ),
      'How to ask for access to that address',
    ),
  ),
  tools: v.optional(described(v.array(text), 'The tools that the agent may use, by the names of the server; absent: all of them')),
  risk: v.optional(described(v.record(v.string(), RISK), 'The risk of single tools, by the names of the server'), {}),
  default_risk: v.optional(described(RISK, 'The risk of all other tools, and of resources and prompts'), 'execute'),
  trust_hints: v.optional(
    described(v.boolean(), 'Whether a tool without an entry in risk has the risk "read" when the server says that it only reads'),
    false,
  ),
  scope: v.optional(
    described(
      v.picklist(['client', 'shared']),
      '"client": each client has a connection, and a process, of its own. "shared": all clients share one',
    ),
    'client',
  ),
  start_timeout_secs: v.optional(described(seconds(1, 600), 'Time for starting the server or connecting to it'), 30),
  timeout_secs: v.optional(described(seconds(1, 3600), 'Time for one request, such as a tool call'), 60),
  idle_secs: v.optional(described(seconds(1, 86_400), 'Time without a request after which a connection is closed'), 600),
  max_connections: v.optional(described(whole(1, 256), 'Maximum number of simultaneous connections to the server'), 16),
})

const server = v.pipe(
  keys,
  v.check(({ command, url }) => (command === undefined) !== (url === undefined), 'Set either command or url'),
)

export const mcpSection = {
  path: 'mcp',
  schema: v.object({
    serve: v.optional(
      v.object({ enabled: v.optional(described(v.boolean(), 'Whether other agents can reach this one at /mcp'), false) }),
      {},
    ),
    servers: v.optional(
      described(
        v.record(
          v.pipe(
            v.string(),
            v.regex(SERVER_NAME, 'must have at most 32 letters, digits, hyphens and single underscores, with no underscore at either end'),
          ),
          server,
        ),
        'The servers by name, such as [mcp.servers.files]',
      ),
      {},
    ),
  }),
} as const

export type McpConfig = v.InferOutput<typeof mcpSection.schema>
export type ServerConfig = v.InferOutput<typeof server>
