/** The steps of a route that takes a body: its declared size, its type, its bytes. */

import type { Runtime } from '@sluice/runtime'
import { AppError } from '@sluice/sdk'
import { countedClient } from '../auth/identity.ts'
import { readBody, tooLarge } from '../request/body.ts'
import { BodyShare } from '../request/body-share.ts'
import { type HttpContext, headersOf, type Step } from '../request/context.ts'
import type { AppParts } from '../server/app-parts.ts'
import { checkStillGood } from './authenticate.ts'
import type { HeaderReader } from './client-address.ts'

/** Throws `too_large` for a body that announces more bytes. Nothing of it has been read by then. */
export function checkDeclaredSize(headers: HeaderReader, bytesMax: number): void {
  const declared = headers.get('content-length')
  if (declared !== null && Number(declared) > bytesMax) throw tooLarge(bytesMax)
}

/** Throws `invalid_request` unless the body is announced as `application/json`, with or without parameters. */
export function checkJsonType(headers: HeaderReader): void {
  const type = headers.get('content-type') ?? ''
  const end = type.indexOf(';')
  if ((end < 0 ? type : type.slice(0, end)).trim().toLowerCase() !== 'application/json') {
    throw new AppError('invalid_request', 'The Content-Type must be application/json')
  }
}

/** See `checkDeclaredSize`. */
export const limitDeclaredSize =
  (bytesMax: number): Step =>
  (c, next) => {
    checkDeclaredSize(headersOf(c), bytesMax)
    return next()
  }

/** See `checkJsonType`. */
export const requireJson: Step = (c, next) => {
  checkJsonType(headersOf(c))
  return next()
}

/** Sets `rawBody`; needs `caller`. A caller whose token was revoked while the body was read is refused. */
export const bufferBody =
  (bytesMax: number, { auth, runtime }: Pick<AppParts, 'auth' | 'runtime'>): Step =>
  async (c, next) => {
    const caller = c.get('caller')
    c.set('rawBody', caller.role === 'client' ? await readShared(c, bytesMax, runtime) : await readBody(c, bytesMax))
    await checkStillGood(caller, auth)
    await next()
  }

/** Reads the body of a client within its share of text. */
async function readShared(c: HttpContext, bytesMax: number, { people, shares }: Pick<Runtime, 'people' | 'shares'>): Promise<Uint8Array> {
  const { person, role } = c.get('caller')
  using share = new BodyShare(shares, countedClient(people, person, role))
  share.checkDeclared(Number(headersOf(c).get('content-length') ?? 0))
  return await readBody(c, bytesMax, share)
}
