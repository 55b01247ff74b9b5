/** `POST /pair`: a one-time code for a bearer token. */

import type { Live, Runtime } from '@sluice/runtime'
import { redeemCode } from '@sluice/runtime'
import { AppError, errorText, ROLES } from '@sluice/sdk'
import * as v from 'valibot'
import type { Endpoint, EndpointDoc } from './endpoint.ts'
import type { Gate, HttpContext } from './gate.ts'
import { headersOf } from './headers-of.ts'
import { checkJsonType, parseJsonObject } from './json-body.ts'
import { limitRate } from './limit-rate.ts'
import type { Limits } from './limits.ts'
import { readBody } from './raw-body.ts'
import { jsonResponse } from './security-headers.ts'

const BYTES_MAX = 4096
const NAME_DEFAULT = 'paired by code'

const doc: EndpointDoc = {
  method: 'POST',
  path: '/pair',
  summary: 'Turn a pairing code into a bearer token, by the header or by the body',
  auth: 'open',
  headers: { 'X-Pairing-Code': 'The code; the body is not looked at then' },
  body: v.object({ code: v.string(), device_name: v.optional(v.string()) }),
  answers: {
    200: {
      description: 'Paired; the token is shown this once',
      schema: v.object({
        paired: v.literal(true),
        token: v.string(),
        device_id: v.string(),
        role: v.picklist(ROLES),
        message: v.string(),
      }),
    },
  },
}

export interface PairOptions {
  readonly runtime: Runtime
  readonly live: Live
  readonly gate: Gate
  readonly limits: Limits
}

export function pairEndpoint({ runtime, live, gate, limits }: PairOptions): Endpoint {
  const { store, clock, bus, log } = runtime
  const limiter = limits.pair(live.config)

  const refuseWrong = (address: string): never => {
    limits.pairing.fail(address)
    if (limits.countWrongCode()) {
      log.error('too many wrong pairing codes: every pending code is dropped, make a new one with `sluice pair new`')
      store.devices.dropCodes().catch((error) => log.error('pending pairing codes were not dropped', { error: errorText(error) }))
    }
    throw new AppError('forbidden', 'The pairing code is wrong, used or expired')
  }

  return {
    doc,
    async serve(c) {
      const { address } = gate.peer(c)
      limitRate(limiter, address, doc.path, live)
      limits.pairing.check(address)
      const paired = await redeemCode(store, await readCode(c), clock)
      if (!paired) return refuseWrong(address)
      limits.pairing.clear(address)
      bus.emit({ type: 'device_paired', device_id: paired.device, name: paired.name })
      log.info('a device was paired', { device: paired.device, name: paired.name, role: paired.role })
      return jsonResponse({
        paired: true,
        token: paired.token,
        device_id: paired.device,
        role: paired.role,
        message: 'Send Authorization: Bearer <token> from now on',
      })
    },
  }
}

async function readCode(c: HttpContext): Promise<{ readonly code: string; readonly name: string }> {
  const header = headersOf(c).get('x-pairing-code')
  if (header !== null) return { code: header, name: NAME_DEFAULT }
  // curl sends no type where there is no body either.
  if (headersOf(c).get('content-type') === null) throw codeIsNeeded()
  checkJsonType(headersOf(c))
  const { code, device_name = NAME_DEFAULT } = parseJsonObject(await readBody(c, BYTES_MAX))
  if (typeof code !== 'string') throw codeIsNeeded()
  if (typeof device_name !== 'string') throw new AppError('invalid_request', "'device_name' must be a text")
  return { code, name: device_name }
}

const codeIsNeeded = (): AppError =>
  new AppError('invalid_request', "The code is needed, as X-Pairing-Code or as 'code' in a JSON body (Content-Type: application/json)")
