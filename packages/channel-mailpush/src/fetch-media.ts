/** The bytes of an attachment of a mail. */
import { AppError, type Attachment, type Channel, type Media } from '@sluice/sdk'
import type { MailApi } from './mail-api.ts'

type Options = Parameters<NonNullable<Channel['fetchMedia']>>[1]

/** What may be otherwise the next time. */
const PASSING = new Set(['rate_limited', 'upstream', 'upstream_timeout'])

export async function fetchMedia(api: Pick<MailApi, 'attachment'>, { source, mime }: Attachment, options: Options): Promise<Media> {
  const [mail, attachment] = 'id' in source ? source.id.split('/', 2) : []
  if (!mail || !attachment) throw new AppError('invalid_request', 'mailpush fetches attachments of its own mails alone')
  try {
    const bytes = await api.attachment({ mail, attachment }, options.bytesMax, options.signal)
    return { bytes, ...(mime !== undefined && { mime }) }
  } catch (error) {
    if (!(error instanceof AppError) || !PASSING.has(error.code)) throw error
    throw new AppError('unavailable', error.message, error.retryAfterSecs === undefined ? {} : { retryAfterSecs: error.retryAfterSecs })
  }
}
