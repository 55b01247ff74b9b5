/** Attachments: finds them in a mail and fetches their bytes. */
import { asUnavailable, attachmentKind } from '@sluice/kit'
import { AppError, type Attachment, type Media } from '@sluice/sdk'
import { ATTACHED_MAIL } from './body-of.ts'
import type { MailPart } from './mail.ts'
import type { MailApi } from './mail-api.ts'

const ATTACHMENTS_MAX = 20
const NAME_CHARS_MAX = 200

/** Returns the first 20 attachments of a mail in order, with ids that `fetchMedia` accepts. */
export function attachmentsOf(payload: MailPart, mailId: string): Attachment[] {
  const found: Attachment[] = []
  const visit = ({ filename, mimeType, body, parts }: MailPart): void => {
    if (found.length >= ATTACHMENTS_MAX) return
    if (body.attachmentId !== undefined) {
      found.push({
        kind: attachmentKind(mimeType),
        name: filename.slice(0, NAME_CHARS_MAX) || 'attachment',
        ...(mimeType && { mime: mimeType.toLowerCase() }),
        source: { id: `${mailId}/${body.attachmentId}` },
      })
    }
    // The files of an attached mail are not the sender's own.
    if (mimeType.toLowerCase() !== ATTACHED_MAIL) for (const inner of parts) visit(inner)
  }
  visit(payload)
  return found
}

/** Implements `Channel.fetchMedia`. */
export async function fetchMedia(api: MailApi, { source, mime }: Attachment, bytesMax: number, signal: AbortSignal): Promise<Media> {
  const [mail, attachment] = 'id' in source ? source.id.split('/', 2) : []
  if (!mail || !attachment) throw new AppError('invalid_request', 'The attachment has no id of a mail')
  try {
    const bytes = await api.attachment({ mail, attachment }, bytesMax, signal)
    return { bytes, ...(mime !== undefined && { mime }) }
  } catch (error) {
    throw asUnavailable(error)
  }
}
