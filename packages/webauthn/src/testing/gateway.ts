/** Calls the routes of the feature as the gateway does: it validates bodies and turns errors into statuses. */
import { AppError, type Host, type IssuedToken, type Pairing, type Role } from '@sluice/sdk'
import { type TestHost, type TestHostOverrides, testHost } from '@sluice/testkit/host'
import * as v from 'valibot'
import { webauthnSection } from '../config.ts'
import feature from '../index.ts'
import { type Authenticator, createAuthenticator, type Edit } from './authenticator.ts'

export interface Answer {
  readonly status: number
  readonly body: Record<string, unknown>
}

export interface TestCall {
  readonly body?: unknown
  readonly query?: Record<string, string>
  readonly id?: string
  /** The device whose token authenticates the call. */
  readonly device?: string | null
}

export interface TestPasskeys {
  readonly host: TestHost
  /** The issued tokens, in order. */
  readonly issued: readonly {
    readonly name: string
    readonly role: Role
    readonly issuedBy: string | null
    readonly expiresAtMs: number | null
  }[]
  /** Calls a route by its method and path, such as `POST /passkey/start`. */
  call(name: string, request?: TestCall): Promise<Answer>
  register(authenticator: Authenticator, edit?: Edit & { readonly user?: string; readonly device?: string | null }): Promise<Answer>
  signIn(authenticator: Authenticator, edit?: Edit & { readonly user?: string }): Promise<Answer>
  /** Returns an authenticator with a registered passkey of this user. */
  registered(user?: string): Promise<Authenticator>
  /** Returns the passkeys of a user as the GET route lists them. */
  kept(user?: string): Promise<Record<string, unknown>[]>
  /** Runs a command and returns the lines that it prints. */
  command(name: string, ...args: string[]): Promise<string[]>
  /** Returns the same gateway after a restart. */
  restarted(): TestPasskeys
}

export function testPasskeys(overrides: TestHostOverrides = {}, config: object = {}, pairing?: Pairing): TestPasskeys {
  const issued: { name: string; role: Role; issuedBy: string | null; expiresAtMs: number | null }[] = []
  const issueToken = async (request: {
    name: string
    role: Role
    issuedBy: string | null
    expiresAtMs: number | null
  }): Promise<IssuedToken> => {
    const number = issued.push(request)
    return { token: `sluice_${number}`, deviceId: `device-${number}` }
  }
  const host = testHost({ services: { issueToken, ...(pairing && { pairing }) }, ...overrides })
  return passkeysOn(host, issued, config)
}

function passkeysOn(host: TestHost, issued: TestPasskeys['issued'], config: object): TestPasskeys {
  const { routes = [], commands = [] } = feature.build(host as Host, v.parse(webauthnSection.schema, { enabled: true, ...config }))
  const call: TestPasskeys['call'] = async (name, { body, query = {}, id = '', device = 'laptop' } = {}) => {
    const route = routes.find(({ method, path }) => `${method} ${path}` === name)
    if (!route) throw new Error(`The feature has no route ${name}`)
    try {
      const request = {
        client: 'client' as never,
        device: route.auth === 'open' ? null : device,
        role: route.auth === 'open' ? null : ('operator' as const),
        by: `device:${device}`,
        onControlSocket: false,
        browserSession: undefined as never,
        onRevoked: () => () => {},
        api: async () => undefined,
        headers: new Headers(),
        params: { id },
        url: new URL('http://localhost/'),
        query: route.query ? valid(route.query, query) : {},
        body: route.body ? valid(route.body, JSON.parse(JSON.stringify(body ?? null))) : undefined,
        raw: new Uint8Array(),
        signal: new AbortController().signal,
        trace: { traceId: 'a'.repeat(32), spanId: 'b'.repeat(16), parentId: null },
      }
      return { status: 200, body: (await route.handle(request)) as Record<string, unknown> }
    } catch (error) {
      const refusal = error instanceof AppError ? error : new AppError('internal', String(error))
      return { status: refusal.status, body: { error: refusal.message, code: refusal.code } }
    }
  }
  const made: TestPasskeys = {
    host,
    issued,
    call,
    async register(authenticator, { user = 'alice', device = 'laptop', ...edit } = {}) {
      const { body } = await call('POST /api/webauthn/register/start', { body: { user_id: user, user_name: user }, device })
      return call('POST /api/webauthn/register/finish', { body: authenticator.register(body, edit), device })
    },
    async signIn(authenticator, { user = 'alice', ...edit } = {}) {
      const { body } = await call('POST /api/webauthn/auth/start', { body: { user_id: user } })
      return call('POST /api/webauthn/auth/finish', { body: authenticator.signIn(body, edit) })
    },
    async registered(user = 'alice') {
      const authenticator = createAuthenticator()
      const { status, body } = await made.register(authenticator, { user })
      if (status !== 200) throw new Error(String(body.error))
      return authenticator
    },
    async kept(user = 'alice') {
      const { body } = await call('GET /api/webauthn/credentials', { query: { user_id: user } })
      return body.credentials as Record<string, unknown>[]
    },
    async command(name, ...args) {
      const lines: string[] = []
      const print = (line: string): void => void lines.push(line)
      const context = {
        args,
        cwd: '/',
        by: 'cli:ada',
        json: false,
        print,
        warn: print,
        signal: AbortSignal.abort(),
        addToConfig: async () => {},
        setInConfig: async () => {},
      }
      await commands.find((command) => command.name === name)?.run(context)
      return lines
    },
    restarted: () => passkeysOn(host, issued, config),
  }
  return made
}

function valid(schema: v.GenericSchema, value: unknown): unknown {
  const result = v.safeParse(schema, value, { abortEarly: true })
  if (result.success) return result.output
  throw new AppError('invalid_request', `The body is invalid at '${v.getDotPath(result.issues[0])}'`)
}
