/** The ids of attachments: where a part is in the mailbox, and how it is encoded. */

export interface MediaId {
  readonly uidValidity: string
  readonly uid: number
  readonly part: string
  readonly encoding: string
}

const ID = /^(\d{1,20})\/(\d{1,10})\/(\d{1,5}(?:\.\d{1,5}){0,40})\/([\w-]{0,40})$/

export const mediaId = ({ uidValidity, uid, part, encoding }: MediaId): string =>
  `${uidValidity}/${uid}/${part}/${/^[\w-]{0,40}$/.test(encoding) ? encoding : ''}`

/** Returns undefined for any other text. */
export function parseMediaId(id: string): MediaId | undefined {
  const [, uidValidity, uid, part, encoding] = ID.exec(id) ?? []
  if (uidValidity === undefined || uid === undefined || part === undefined) return undefined
  return { uidValidity, uid: Number(uid), part, encoding: encoding ?? '' }
}
