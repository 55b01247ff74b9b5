/** The step of a route whose body has a file: it goes to the disk while it arrives, and never as a whole into the memory. */
import type { Runtime } from '@sluice/runtime'
import { MAIN_AGENT, type ReceivedFile, type Route } from '@sluice/sdk'
import { countedClient } from '../auth/identity.ts'
import { Base64Member } from '../request/base64-member.ts'
import { BODY_BYTES_MAX, endedEarly, tooLarge } from '../request/body.ts'
import { BodyShare } from '../request/body-share.ts'
import { type Caller, type HttpContext, headersOf, type Step } from '../request/context.ts'
import type { AppParts } from '../server/app-parts.ts'
import { checkStillGood } from './authenticate.ts'

/** The part of the body that has the file. */
export interface FileMember {
  /** The member at the top of the body, in Base64. The parsed body has an empty text there. */
  readonly name: string
  /** The largest file. */
  readonly bytesMax: number
}

/** A route of this package whose body has a file, which the handler gets as `file` of a `FileRequest`. */
export interface FileRoute extends Route {
  readonly file?: FileMember
}

export interface FileRequest {
  /** Absent where the request did not come over HTTP: the body then has the file. */
  readonly file?: ReceivedFile
}

/** Sets `rawBody` and `file`. The file is deleted after the request, unless it was attached. */
export const receiveFile =
  (member: FileMember, { auth, runtime }: Pick<AppParts, 'auth' | 'runtime'>): Step =>
  async (c, next) => {
    const caller = c.get('caller')
    const check = await roomOf(caller, runtime)
    check(1)
    await using file = await runtime.files.receive()
    const body = new Base64Member(member.name, BODY_BYTES_MAX)
    using share = shareOf(c, runtime)
    await eachPiece(c, async (piece) => {
      share?.take(piece.length)
      const bytes = body.take(piece)
      if (file.length + bytes.length > member.bytesMax) throw tooLarge(member.bytesMax)
      check(file.length + bytes.length)
      await file.write(bytes)
    })
    share?.release()
    c.set('rawBody', body.rest)
    c.set('file', await file.finish())
    await checkStillGood(caller, auth)
    await next()
  }

/**
 * Returns a function that throws `share_used` when a file of this many bytes has no room in the share of the caller. A client talks to the
 * main agent. Two files that arrive at once may both have room; the second one that is attached then has none.
 */
async function roomOf({ person, role }: Caller, { files, people, shares }: Runtime): Promise<(bytes: number) => void> {
  if (role !== 'client') return () => undefined
  const client = countedClient(people, person, role)
  const { others = [], limit } = shares.ofFiles(client, person)
  if (!limit) return () => undefined
  const kept = await Promise.all([person, ...others].map((owner) => files.attachedBy(MAIN_AGENT, owner)))
  const own = kept.reduce((sum, bytes) => sum + bytes, 0)
  return (bytes) => limit.check({ own: own + bytes, pool: 0 })
}

function shareOf(c: HttpContext, { people, shares }: Runtime): BodyShare | undefined {
  const { person, role } = c.get('caller')
  if (role !== 'client') return undefined
  const share = new BodyShare(shares, countedClient(people, person, role))
  share.checkDeclared(Number(headersOf(c).get('content-length') ?? 0))
  return share
}

/** Reads the body no faster than `take` takes it. After a failure the rest is dropped as it arrives, so that the sender gets the answer. */
async function eachPiece(c: HttpContext, take: (piece: Buffer) => Promise<void>): Promise<void> {
  const incoming = c.env?.incoming
  const pieces: AsyncIterable<Uint8Array> | null = incoming ? incoming.iterator({ destroyOnReturn: false }) : c.req.raw.body
  if (!pieces) return
  let isTaking = false
  try {
    for await (const piece of pieces) {
      isTaking = true
      await take(Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength))
      isTaking = false
    }
  } catch (error) {
    incoming?.resume()
    throw isTaking ? error : endedEarly(error)
  }
}
