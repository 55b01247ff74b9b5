/** `POST /pair`: a one-time code for a bearer token. */

import { type Runtime, redeemCode } from '@sluice/runtime'
import { AppError, errorText, ROLES } from '@sluice/sdk'
import * as v from 'valibot'
import { checkLockout } from '../auth/lockout.ts'
import { checkDeclaredSize, checkJsonType } from '../middleware/body.ts'
import { sameOrigin } from '../middleware/origin.ts'
import { type Limits, rateLimit } from '../middleware/rate-limit.ts'
import { parseJsonObject, readBody } from '../request/body.ts'
import { type Endpoint, type EndpointDoc, type HttpContext, headersOf, type Step } from '../request/context.ts'
import { jsonResponse } from '../request/respond.ts'
import type { AppParts } from '../server/app-parts.ts'

const BODY_BYTES_MAX = 4096
const NAME_DEFAULT = 'paired by code'

const doc: EndpointDoc = {
  method: 'POST',
  path: '/pair',
  summary: 'Exchange a pairing code for a bearer token; the code is in the header or in the body',
  auth: 'open',
  headers: { 'X-Pairing-Code': 'The code; the body is then ignored' },
  body: v.object({ code: v.string(), device_name: v.optional(v.string()) }),
  answers: {
    200: {
      description: 'Paired; the token is shown only once',
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

export const pairEndpoint = ({ runtime, snapshot, limits }: AppParts): Endpoint => ({
  doc,
  steps: [
    sameOrigin(snapshot.gateway),
    rateLimit(limits.pair(snapshot.gateway), doc.path, snapshot),
    refuseLocked(limits),
    pair(runtime, limits),
  ],
})

const refuseLocked =
  ({ pairing }: Limits): Step =>
  async (c, next) => {
    const { address, operator } = c.get('peer')
    if (operator === undefined) await checkLockout(pairing, address)
    return next()
  }

function pair({ store, clock, bus, log }: Runtime, limits: Limits): Step {
  const refuseWrongCode = async (address: string): Promise<never> => {
    await limits.pairing.fail(address)
    if (await limits.countWrongCode()) {
      log.error('too many wrong pairing codes: all pending codes are dropped; make a new one with `sluice pair new`')
      store.devices.dropCodes().catch((error) => log.error('dropping pending pairing codes failed', { error: errorText(error) }))
    }
    throw new AppError('forbidden', 'The pairing code is wrong, used or expired')
  }

  return async (c) => {
    const { address } = c.get('peer')
    const paired = await redeemCode(store, await readCode(c), clock)
    if (!paired) return refuseWrongCode(address)
    const { device, name, role, token } = paired
    await limits.pairing.clear(address)
    bus.emit({ type: 'device_paired', device_id: device, name })
    log.info('device paired', { device, name, role })
    return jsonResponse({
      paired: true,
      token,
      device_id: device,
      role,
      message: 'Send Authorization: Bearer <token> from now on',
    })
  }
}

async function readCode(c: HttpContext): Promise<{ readonly code: string; readonly name: string }> {
  const header = headersOf(c).get('x-pairing-code')
  if (header !== null) return { code: header, name: NAME_DEFAULT }
  // A request without a body usually has no type either.
  if (headersOf(c).get('content-type') === null) throw codeIsNeeded()
  checkJsonType(headersOf(c))
  checkDeclaredSize(headersOf(c), BODY_BYTES_MAX)
  const { code, device_name = NAME_DEFAULT } = parseJsonObject(await readBody(c, BODY_BYTES_MAX))
  if (typeof code !== 'string') throw codeIsNeeded()
  if (typeof device_name !== 'string') throw new AppError('invalid_request', "'device_name' must be a string")
  return { code, name: device_name }
}

const codeIsNeeded = (): AppError =>
  new AppError('invalid_request', "The code is needed, as X-Pairing-Code or as 'code' in a JSON body (Content-Type: application/json)")
