/** Serves a `Route`, as features and the resources of the API declare it: caller, query, body, handler, answer. */

import type { Runtime } from '@sluice/runtime'
import type { ApiCall, BrowserSession, Route, RouteRequest, Trace } from '@sluice/sdk'
import type { AppParts } from '../app-parts.ts'
import { CONTROL_SOCKET } from '../auth.ts'
import { BODY_BYTES_MAX, parseJson } from '../body.ts'
import { type Endpoint, type HttpContext, type Step, traceOf } from '../context.ts'
import { CookieSession } from '../cookie-session.ts'
import { limitedClient } from '../identity.ts'
import { authenticate } from '../middleware/authenticate.ts'
import { bufferBody, limitDeclaredSize, requireJson } from '../middleware/body.ts'
import { sameOrigin } from '../middleware/origin.ts'
import { rateLimit } from '../middleware/rate-limit.ts'
import { jsonText, withSecurityHeaders } from '../respond.ts'
import { validate } from './validate.ts'

/** A longer answer counts as a download. */
const ANSWER_CHARS_MAX = 262_144

const NO_BODY = new Uint8Array(0)

export function routeEndpoint(route: Route, parts: AppParts): Endpoint {
  const { runtime, snapshot, limits } = parts
  const { method, path, callsPerMinute, bodyBytesMax = BODY_BYTES_MAX } = route
  const steps: Step[] = [limitDeclaredSize(bodyBytesMax), sameOrigin(snapshot.gateway)]
  if (callsPerMinute !== undefined) {
    steps.push(rateLimit(limits.route(`${method} ${path}`, callsPerMinute, snapshot.gateway), path, snapshot))
  }
  steps.push(authenticate(route.auth, parts), validateQuery(route))
  if (route.body) steps.push(requireJson, bufferBody(bodyBytesMax, parts))
  steps.push(async (c) => {
    const body = route.body && validate(route.body, parseJson(c.get('rawBody')), 'body')
    const answer = await route.handle(new ServedRequest(c, body, parts))
    return answer instanceof Response ? withSecurityHeaders(answer) : jsonAnswer(c, runtime.hideSecrets(answer ?? null), runtime)
  })
  return { doc: route, steps }
}

/** A large answer to a client counts as a download until it is sent. Throws `share_used` when the client reads too many at once. */
function jsonAnswer(c: HttpContext, value: unknown, { shares }: Runtime): Response {
  const json = JSON.stringify(value)
  const { person, role } = c.get('caller')
  const outgoing = c.env?.outgoing
  if (role === 'client' && outgoing && !outgoing.closed && json.length > ANSWER_CHARS_MAX) {
    const { release } = shares.take(limitedClient(person, role), 'downloads')
    outgoing.once('close', release)
  }
  return jsonText(json)
}

/** Sets `query`. */
const validateQuery =
  ({ query }: Route): Step =>
  (c, next) => {
    c.set('query', query ? validate(query, c.req.query(), 'query') : {})
    return next()
  }

/** Handlers may spread a request, so the members that are cheap are its own properties; the others are created when they are read. */
class ServedRequest implements RouteRequest {
  readonly client: RouteRequest['client']
  readonly device: string | null
  readonly by: string
  readonly onControlSocket: boolean
  readonly role: RouteRequest['role']
  readonly query: unknown
  readonly body: unknown
  readonly raw: Uint8Array
  readonly #context: HttpContext
  readonly #parts: AppParts

  constructor(c: HttpContext, body: unknown, parts: AppParts) {
    const { client, device, by, role, tokenHash } = c.get('caller')
    this.client = client
    this.device = device
    this.by = by
    this.onControlSocket = tokenHash === CONTROL_SOCKET
    this.role = role
    this.query = c.get('query')
    this.body = body
    this.raw = c.get('rawBody') ?? NO_BODY
    this.#context = c
    this.#parts = parts
  }

  async api(call: ApiCall): Promise<unknown> {
    const { apiCalls } = await import('../in-process.ts')
    return apiCalls(this.#parts)(call, this)
  }

  onRevoked(listener: () => void): () => void {
    const { tokenHash } = this.#context.get('caller')
    return this.#parts.auth.onRevoked((revoked) => {
      if (revoked === tokenHash) listener()
    })
  }

  get browserSession(): BrowserSession {
    return new CookieSession(this.#context, this.#parts)
  }
  get headers(): Headers {
    return this.#context.req.raw.headers
  }
  get params(): Readonly<Record<string, string>> {
    return this.#context.req.param()
  }
  get url(): URL {
    return new URL(this.#context.req.url)
  }
  get signal(): AbortSignal {
    return this.#context.req.raw.signal
  }
  get trace(): Trace {
    return traceOf(this.#context)
  }
}
