/** `[browser]` (§2.6). */
import { headerSecret, whole } from '@sluice/sdk'
import * as v from 'valibot'
import { checkEndpoint } from './computer-use/check-endpoint.ts'

const text = v.pipe(v.string(), v.minLength(1))
const coordinateMax = v.optional(v.pipe(whole(1, 100_000), v.description('A larger coordinate is refused before anything is sent')))

const computerUse = v.pipe(
  v.object({
    endpoint: v.optional(v.pipe(text, v.description('Where the sidecar takes actions')), 'http://127.0.0.1:8787/v1/actions'),
    api_key: v.optional(v.pipe(headerSecret(), v.description('Sent as a bearer token'))),
    timeout_ms: v.optional(v.pipe(whole(1, 300_000), v.description('Of one action')), 15_000),
    allow_remote_endpoint: v.optional(
      v.pipe(v.boolean(), v.description('Whether the sidecar may be elsewhere than on a private address; it must then be https')),
      false,
    ),
    window_allowlist: v.optional(v.pipe(v.array(text), v.description('Windows the sidecar may touch; it is the one to hold this')), []),
    max_coordinate_x: coordinateMax,
    max_coordinate_y: coordinateMax,
  }),
  v.check(
    (config) => checkEndpoint(config) === undefined,
    ({ input }) => checkEndpoint(input) ?? '',
  ),
)

export const browserSection = {
  path: 'browser',
  schema: v.object({
    enabled: v.optional(v.pipe(v.boolean(), v.description('Whether the model has a browser at all')), false),
    backend: v.optional(
      v.pipe(
        v.picklist(['agent_browser', 'native', 'computer_use', 'auto']),
        v.description(
          'The agent-browser command, an installed Chromium driven in process, or a sidecar that drives a desktop. Of the first two the other one is used where the named one cannot be; auto prefers native',
        ),
      ),
      'agent_browser',
    ),
    allowed_domains: v.optional(
      v.pipe(
        v.array(text),
        v.description(
          'example.com stands for it and its subdomains, * for any public host; empty: no page is opened and nothing is loaded',
        ),
      ),
      [],
    ),
    native_headless: v.optional(v.pipe(v.boolean(), v.description('Whether the browser of `native` shows no window')), true),
    native_chrome_path: v.optional(v.pipe(text, v.description('The Chromium to use; default: the one that is found'))),
    session_name: v.optional(
      v.pipe(
        v.string(),
        v.regex(/^[A-Za-z0-9_]{1,32}$/, 'has other characters than letters, digits and _, or more than 32'),
        v.description('How sessions of `agent_browser` are named, and what a sidecar is told'),
      ),
    ),
    computer_use: v.optional(computerUse, {}),
  }),
} as const

export type BrowserConfig = v.InferOutput<typeof browserSection.schema>
export type ComputerUseConfig = BrowserConfig['computer_use']
