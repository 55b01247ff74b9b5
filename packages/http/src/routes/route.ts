/** Serves a `Route`, as features and the resources of the API declare it: caller, query, body, handler, answer. */

import { ServerResponse } from 'node:http'
import type { Runtime } from '@sluice/runtime'
import type { ApiCall, BrowserSession, ReceivedFile, Route, RouteRequest, Trace } from '@sluice/sdk'
import { Download } from '../answers/download.ts'
import { CONTROL_SOCKET } from '../auth/auth.ts'
import { CookieSession } from '../auth/browser-session.ts'
import { countedClient } from '../auth/identity.ts'
import { authenticate } from '../middleware/authenticate.ts'
import { bufferBody, limitDeclaredSize, requireJson } from '../middleware/body.ts'
import { sameOrigin } from '../middleware/origin.ts'
import { limitClient, rateLimit } from '../middleware/rate-limit.ts'
import { type FileRequest, type FileRoute, receiveFile } from '../middleware/receive-file.ts'
import { BODY_BYTES_MAX, parseJson } from '../request/body.ts'
import { type Endpoint, type HttpContext, type Step, traceOf } from '../request/context.ts'
import { jsonText, withSecurityHeaders } from '../request/respond.ts'
import type { AppParts } from '../server/app-parts.ts'
import { validate } from './validate.ts'

/** A longer answer counts as a download. */
const ANSWER_CHARS_MAX = 262_144

const NO_BODY = new Uint8Array(0)

export function routeEndpoint(route: Route, parts: AppParts): Endpoint {
  const { runtime, snapshot, limits } = parts
  const { method, path, callsPerMinute, bodyBytesMax = BODY_BYTES_MAX } = route
  const steps: Step[] = [limitDeclaredSize(bodyBytesMax), sameOrigin(snapshot.gateway)]
  const limit =
    callsPerMinute === undefined
      ? []
      : [rateLimit(limits.route(`${method} ${path}`, callsPerMinute, snapshot.gateway), path, snapshot, runtime.people)]
  // Where a token is needed, a request without a token does not count, so that it cannot use up the limit of a device.
  if (route.auth === 'open') steps.push(...limit, authenticate(route.auth, parts))
  else
    steps.push(
      authenticate(route.auth, parts),
      ...(limit.length > 0 ? limit : [limitClient(path, { people: runtime.people, snapshot, limits })]),
    )
  steps.push(validateQuery(route))
  const { file } = route as FileRoute
  if (route.body) steps.push(requireJson, file ? receiveFile(file, parts) : bufferBody(bodyBytesMax, parts))
  steps.push(async (c) => {
    const body = route.body && validate(route.body, parseJson(c.get('rawBody')), 'body')
    const answer = await route.handle(new ServedRequest(c, body, parts))
    if (answer instanceof Download) return await downloadAnswer(c, answer, runtime)
    return answer instanceof Response ? withSecurityHeaders(answer) : jsonAnswer(c, runtime.hideSecrets(answer ?? null), runtime)
  })
  return { doc: route, steps }
}

/** A large answer to a client counts as a download until it is sent. Throws `share_used` when the client reads too many at once. */
function jsonAnswer(c: HttpContext, value: unknown, runtime: Runtime): Response {
  const json = JSON.stringify(value)
  const outgoing = json.length > ANSWER_CHARS_MAX ? openAnswer(c) : undefined
  if (outgoing) outgoing.once('close', countDownload(c, runtime))
  return jsonText(json)
}

/** Throws `share_used` before anything is opened. */
async function downloadAnswer(c: HttpContext, download: Download, runtime: Runtime): Promise<Response> {
  const release = countDownload(c, runtime)
  try {
    const { response, close, closed } = await download.open()
    const outgoing = openAnswer(c)
    if (outgoing) outgoing.once('close', close).once('close', release)
    else void closed.then(release)
    return withSecurityHeaders(response)
  } catch (error) {
    release()
    throw error
  }
}

/** Counts a download of a client, and returns the function that ends it. */
function countDownload(c: HttpContext, { people, shares }: Runtime): () => void {
  const { person, role } = c.get('caller')
  return role === 'client' ? shares.take(countedClient(people, person, role), 'downloads').release : () => {}
}

/** Returns the answer of a connection that is still open. */
function openAnswer(c: HttpContext): ServerResponse | undefined {
  const outgoing = c.env?.outgoing
  return outgoing instanceof ServerResponse && !outgoing.closed ? outgoing : undefined
}

/** Sets `query`. */
const validateQuery =
  ({ query }: Route): Step =>
  (c, next) => {
    c.set('query', query ? validate(query, c.req.query(), 'query') : {})
    return next()
  }

/** Handlers may spread a request, so the members that are cheap are its own properties; the others are created when they are read. */
class ServedRequest implements RouteRequest, FileRequest {
  readonly file?: ReceivedFile
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
    const file = c.get('file')
    if (file) this.file = file
    this.#context = c
    this.#parts = parts
  }

  async api(call: ApiCall): Promise<unknown> {
    const { apiCalls } = await import('../server/in-process.ts')
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
