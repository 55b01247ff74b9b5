/** The configuration section `[browser]`. */
import { isIP } from 'node:net'
import { isPublicAddress } from '@sluice/kit'
import { headerSecret, whole } from '@sluice/sdk'
import * as v from 'valibot'

const text = v.pipe(v.string(), v.minLength(1))
const coordinateMax = v.optional(
  v.pipe(whole(1, 100_000), v.description('An action with a larger coordinate is refused before it is sent')),
)

const computerUse = v.pipe(
  v.object({
    endpoint: v.optional(v.pipe(text, v.description('URL of the sidecar that performs actions')), 'http://127.0.0.1:8787/v1/actions'),
    api_key: v.optional(v.pipe(headerSecret(), v.description('Sent as a bearer token'))),
    timeout_ms: v.optional(v.pipe(whole(1, 300_000), v.description('Time limit of one action')), 15_000),
    allow_remote_endpoint: v.optional(
      v.pipe(v.boolean(), v.description('Whether the sidecar may have a public address; it must then use https')),
      false,
    ),
    window_allowlist: v.optional(v.pipe(v.array(text), v.description('Windows the sidecar may use; the sidecar enforces this')), []),
    max_coordinate_x: coordinateMax,
    max_coordinate_y: coordinateMax,
  }),
  v.check(
    (config) => endpointProblem(config.endpoint, config.allow_remote_endpoint) === undefined,
    ({ input }) => endpointProblem(input.endpoint, input.allow_remote_endpoint) ?? '',
  ),
)

export const browserSection = {
  path: 'browser',
  schema: v.object({
    enabled: v.optional(v.pipe(v.boolean(), v.description('Whether the agent has the browser tool')), false),
    backend: v.optional(
      v.pipe(
        v.picklist(['agent_browser', 'native', 'computer_use', 'auto']),
        v.description(
          'agent_browser is an external command, native an installed Chromium, computer_use a sidecar that drives a desktop. agent_browser falls back to native when the command cannot be used; auto prefers native to agent_browser',
        ),
      ),
      'agent_browser',
    ),
    allowed_domains: v.optional(
      v.pipe(
        v.array(text),
        v.description('Domains the browser may load, with their subdomains; * allows every public host. If empty, no page can be opened'),
      ),
      [],
    ),
    native_headless: v.optional(v.pipe(v.boolean(), v.description('Whether Chromium runs without a window')), true),
    native_chrome_path: v.optional(v.pipe(text, v.description('Path of the Chromium to use; default: the first one found'))),
    session_name: v.optional(
      v.pipe(
        v.string(),
        v.regex(/^[A-Za-z0-9_]{1,32}$/, 'must be 1 to 32 letters, digits or _'),
        v.description('Prefix of the session names of agent_browser; also sent to the sidecar'),
      ),
    ),
    computer_use: v.optional(computerUse, {}),
  }),
} as const

export type BrowserConfig = v.InferOutput<typeof browserSection.schema>
export type ComputerUseConfig = BrowserConfig['computer_use']

/** Returns why the sidecar's endpoint is not allowed. Every name except `localhost` counts as remote, because it may resolve to any address. */
function endpointProblem(endpoint: string, allowsRemote: boolean): string | undefined {
  const url = URL.parse(endpoint)
  if (!url || (url.protocol !== 'http:' && url.protocol !== 'https:')) return 'endpoint must be an http or https URL'
  if (url.username !== '' || url.password !== '') return 'endpoint must not contain a user name or password: use api_key'
  if (isPrivate(url.hostname)) return undefined
  if (!allowsRemote) return 'endpoint is not on a private address, and allow_remote_endpoint is false'
  return url.protocol === 'https:' ? undefined : 'endpoint is not on a private address, so it must use https'
}

function isPrivate(hostname: string): boolean {
  const address = hostname.replace(/^\[|\]$/g, '')
  return isIP(address) ? !isPublicAddress(address) : address === 'localhost'
}
