/** The routes of the dashboard behind the real application and store, and a browser that keeps its cookies. */
import { type TestGatewayOptions, type TestRequest, testGateways } from '@sluice/http/testing'
import type { Route, Services } from '@sluice/sdk'
import { testHost } from '@sluice/testkit/host'
import feature from '../index.ts'

export const ORIGIN = 'http://localhost:42617'

export interface BrowserOptions {
  /** The origin of the page. Default: `ORIGIN`. */
  readonly origin?: string
  /** The `Host` header. Default: the host of the origin. */
  readonly host?: string
}

/** A page of a browser. It sends what a browser and our page send; a header that is undefined is left out. */
export interface Browser {
  cookie: string
  /** The last `Set-Cookie` header. */
  setCookie: string
  send(
    method: string,
    path: string,
    init?: { body?: unknown; headers?: Record<string, string | undefined> } & Pick<TestRequest, 'peer'>,
  ): Promise<Response>
  signIn(code: string): Promise<Response>
}

/** Makes dashboards for the test file that calls it. */
export function testDashboards() {
  const gateways = testGateways()
  return (options: TestGatewayOptions = {}, services: Partial<Services> = {}, moreRoutes: readonly Route[] = []) => {
    const host = testHost({
      services: { addresses: () => ({ listening: 'http://127.0.0.1:42617', public: options.config?.public_url ?? null }), ...services },
    })
    const { routes = [], commands = [] } = feature.build(host, {})
    const gateway = gateways({ withStreams: true, ...options, snapshot: { routes: [...routes, ...moreRoutes], ...options.snapshot } })
    const run = async (...args: string[]) => {
      const lines: string[] = []
      const warnings: string[] = []
      const context = {
        args,
        cwd: '/',
        by: 'cli:ada',
        json: false,
        print: (line: string) => void lines.push(line),
        warn: (line: string) => void warnings.push(line),
        signal: new AbortController().signal,
        addToConfig: async () => {},
        setInConfig: async () => {},
      }
      await commands[0]?.run(args.includes('--json') ? { ...context, json: true, args: args.filter((each) => each !== '--json') } : context)
      return { lines, warnings }
    }
    const code = async (...args: string[]): Promise<string> => (await run(...args)).lines[0]?.split('#sign-in=')[1] ?? ''
    const browser = ({ origin = ORIGIN, host: hostHeader = new URL(origin).host }: BrowserOptions = {}): Browser => {
      const made: Browser = {
        cookie: '',
        setCookie: '',
        async send(method, path, { body, headers = {}, ...rest } = {}) {
          const isChange = method !== 'GET'
          const all: Record<string, string | undefined> = {
            host: hostHeader,
            'sec-fetch-site': 'same-origin',
            'x-sluice-dashboard': '1',
            ...(isChange && { origin }),
            ...(body !== undefined && { 'content-type': 'application/json' }),
            ...(made.cookie !== '' && { cookie: made.cookie }),
            ...headers,
          }
          const sent = Object.entries(all).flatMap(([name, value]) => (value === undefined ? [] : [[name, value] as [string, string]]))
          const response = await gateway.request(path, {
            method,
            headers: sent,
            ...(body !== undefined && { body: JSON.stringify(body) }),
            ...rest,
          })
          const set = response.headers.get('set-cookie')
          if (set !== null) {
            made.setCookie = set
            made.cookie = set.includes('Max-Age=0') ? '' : (set.split(';')[0] ?? '')
          }
          return response
        },
        signIn: (value) => made.send('POST', '/api/dashboard/sign-in', { body: { code: value } }),
      }
      return made
    }
    const signedIn = async (options: BrowserOptions & { readonly role?: string } = {}): Promise<Browser> => {
      const made = browser(options)
      const response = await made.signIn(await code(...(options.role === undefined ? [] : ['--role', options.role])))
      if (response.status !== 200) throw new Error(await response.text())
      return made
    }
    return { ...gateway, host, run, code, browser, signedIn }
  }
}
