/** Uploads the files of a reply. Source: `Attachments` of `@linqapp/sdk` 0.28.2. */
import { asUnavailable, callProvider, mediaTypeOfName } from '@sluice/kit'
import { members, textAt, valueAt } from '@sluice/kit/foreign-json'
import { AppError, type Attachment, sameOrigin } from '@sluice/sdk'
import { type Api, post } from './api.ts'

/** The names of types that the platform spells differently, and the types that it refuses, which are sent as text or in an archive only. */
const SPELLINGS: Readonly<Record<string, string>> = {
  'audio/mp4': 'audio/x-m4a',
  'audio/wav': 'audio/x-wav',
  'application/gzip': 'application/x-gzip',
}
const REFUSED = ['image/webp', 'image/svg+xml', 'audio/ogg', 'audio/flac', 'video/webm', 'application/octet-stream']

/**
 * Returns the platform's id of the file. Throws `unavailable` after a failure that may pass, because an upload that is repeated does no
 * harm, and `invalid_request` for a type that the platform refuses.
 */
export async function uploadFile(api: Api, { name, mime, source }: Attachment, signal: AbortSignal): Promise<string> {
  if (!('bytes' in source)) throw new AppError('invalid_request', 'The attachment has no bytes')
  const known = mime ?? mediaTypeOfName(name) ?? 'application/octet-stream'
  const content_type = SPELLINGS[known] ?? known
  if (REFUSED.includes(content_type)) throw new AppError('invalid_request', `textrelay takes no files like '${name}' (${content_type})`)
  const bytes = new Uint8Array(source.bytes)
  try {
    const { json } = await callProvider(post(api, '/attachments', { filename: name, content_type, size_bytes: bytes.length }, signal))
    const [id, url] = [textAt(json, 'attachment_id'), textAt(json, 'upload_url')]
    if (id === '' || !isUploadUrl(url, api.url)) throw new AppError('upstream', 'textrelay returned no id and no place for the file')
    // The URL carries its own signature, so the request gets the headers that were signed and no token.
    const given = Object.entries(members(valueAt(json, 'required_headers'))).filter(
      (header): header is [string, string] => typeof header[1] === 'string',
    )
    const fetch = sameOrigin(url, api.url) ? api.fetch : putPublicly(api, url, bytes)
    const upload = { fetch, provider: 'textrelay', url, method: 'PUT', headers: Object.fromEntries(given), body: bytes, signal }
    await callProvider({ ...upload, timeoutMs: UPLOAD_MS })
    return id
  } catch (error) {
    throw asUnavailable(error)
  }
}

const UPLOAD_MS = 120_000

/** Files go to storage over https, or to the origin of the API. */
const isUploadUrl = (url: string, apiUrl: string): boolean =>
  URL.canParse(url) && (new URL(url).protocol === 'https:' || sameOrigin(url, apiUrl))

/** Sends the file to storage that the platform names, which must have a public address and may not redirect. */
const putPublicly =
  ({ publicFetch }: Api, url: string, body: Uint8Array): typeof fetch =>
  (_input, { method = 'PUT', headers, signal } = {}) =>
    publicFetch(url, {
      method,
      headers: Object.fromEntries(new Headers(headers)),
      body,
      signal: signal ?? new AbortController().signal,
      admit: ({ href }) => {
        if (href !== new URL(url).href) throw new AppError('forbidden', 'textrelay redirects the upload of a file')
      },
    })
