/** Routes of features and of the gateway itself, as endpoints: gate, body, query, handler, answer. */

import { expectation } from '@sluice/config'
import { type HideSecrets, noSecrets } from '@sluice/runtime'
import { AppError, type Route, type RouteRequest, type Trace } from '@sluice/sdk'
import * as v from 'valibot'
import type { Endpoint, RequestScope } from './endpoint.ts'
import type { Caller, Gate, HttpContext } from './gate.ts'
import { headersOf } from './headers-of.ts'
import { checkJsonType, parseJson } from './json-body.ts'
import { BODY_BYTES_MAX, checkDeclaredSize, readBody } from './raw-body.ts'
import { jsonResponse, withSecurityHeaders } from './security-headers.ts'

const NO_BODY = new Uint8Array(0)

export interface RouteOptions {
  /** Masks secrets in the answer. */
  readonly hide?: HideSecrets
  /** Counts a call against an address, and throws to refuse it. */
  readonly limit?: ((address: string) => void) | undefined
}

export function routeEndpoint(route: Route, gate: Gate, { hide = noSecrets, limit }: RouteOptions = {}): Endpoint {
  const bodyBytesMax = route.bodyBytesMax ?? BODY_BYTES_MAX
  return {
    doc: route,
    async serve(c, scope) {
      checkDeclaredSize(c, bodyBytesMax)
      limit?.(gate.peer(c).address)
      const caller = await gate.admit(c, route.auth)
      const query = route.query ? validate(route.query, c.req.query(), 'query') : {}
      let raw: Uint8Array = NO_BODY
      let body: unknown
      if (route.body) {
        checkJsonType(headersOf(c))
        raw = await readBody(c, bodyBytesMax)
        await gate.recheck(caller)
        body = validate(route.body, parseJson(raw), 'body')
      }
      const answer = await route.handle(new ServedRequest(c, scope, caller, { query, body, raw }))
      return answer instanceof Response ? withSecurityHeaders(answer) : jsonResponse(hide(answer ?? null))
    },
  }
}

/** What is costly to make is made when it is asked for. */
class ServedRequest implements RouteRequest {
  readonly client: RouteRequest['client']
  readonly device: string | null
  readonly role: RouteRequest['role']
  readonly query: unknown
  readonly body: unknown
  readonly raw: Uint8Array
  readonly #context: HttpContext
  readonly #scope: RequestScope

  constructor(
    c: HttpContext,
    scope: RequestScope,
    { client, device, role }: Caller,
    { query, body, raw }: Pick<RouteRequest, 'query' | 'body' | 'raw'>,
  ) {
    this.client = client
    this.device = device
    this.role = role
    this.query = query
    this.body = body
    this.raw = raw
    this.#context = c
    this.#scope = scope
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
    return this.#scope.trace
  }
}

/** Throws `invalid_request` that names the member and what it must be, never what was sent. */
function validate(schema: v.GenericSchema, value: unknown, what: string): unknown {
  const result = v.safeParse(schema, value, { abortEarly: true })
  if (result.success) return result.output
  throw new AppError('invalid_request', `The ${what} is not valid: ${expectation(result.issues[0], schema)}`)
}
