/**
 * Attachments: finds them in an event and fetches their bytes. A request for media carries the API token, so it goes only to
 * the host of `api_url`, on any port.
 */
import { downloadFile, followRedirects } from '@sluice/kit'
import { textAt } from '@sluice/kit/foreign-json'
import { AppError, type Attachment, type Host, type Media, sameOrigin } from '@sluice/sdk'
import { type Api, authorization } from './send.ts'

const NAME_CHARS_MAX = 255
const EXTENSION = /.\.[a-z0-9]{1,8}$/i
const BYTES_MAX = 26_214_400

/** For each type of message: the kind of its attachment, and its name when the URL has none. */
const MEDIA: Readonly<Record<string, readonly [kind: Attachment['kind'], name: string]>> = {
  image: ['image', 'image'],
  sticker: ['image', 'sticker'],
  audio: ['audio', 'audio.ogg'],
  voice: ['audio', 'voice.ogg'],
  video: ['video', 'video'],
  document: ['file', 'document'],
}

/**
 * Returns the attachment of a message; undefined for a message of another type or without a URL. For a document without a
 * caption, `text` is the name of the sender's file, while the URL has the name of the platform's copy.
 */
export function attachmentOf(event: unknown, type: string, text: string): Attachment | undefined {
  const media = Object.hasOwn(MEDIA, type) ? MEDIA[type] : undefined
  const url = textAt(event, 'data', 'mediaUrl', 'media_url').trim()
  if (!media || url === '') return undefined
  const [kind, defaultName] = media
  const storedName = fileNameIn(url)
  const sentName = type === 'document' && isSentName(text.trim(), storedName) ? text.trim() : undefined
  return { kind, name: sentName ?? storedName ?? defaultName, source: { url } }
}

/** Returns whether the text is a plain file name with the extension of the stored file. */
function isSentName(text: string, storedName: string | undefined): boolean {
  const isName = text.length <= NAME_CHARS_MAX && EXTENSION.test(text) && !/[\n\r/\\]/.test(text)
  return isName && (storedName === undefined || extensionOf(storedName) === extensionOf(text))
}

const extensionOf = (name: string): string => name.slice(name.lastIndexOf('.') + 1).toLowerCase()

/** Returns the last segment of the file path in a URL if it has an extension, which tells the format. */
function fileNameIn(text: string): string | undefined {
  const url = URL.parse(text)
  const path = url?.searchParams.get('fileName') ?? url?.pathname ?? ''
  const name = path.slice(Math.max(path.lastIndexOf('/'), path.lastIndexOf('\\')) + 1).slice(-NAME_CHARS_MAX)
  return EXTENSION.test(name) ? name : undefined
}

/** Implements `Channel.fetchMedia` for files of at most 25 MiB. */
export const fetchMedia = (host: Host, api: Api, { source }: Attachment, bytesMax: number, signal: AbortSignal): Promise<Media> =>
  downloadFile({
    provider: 'bizchat',
    bytesMax: Math.min(bytesMax, BYTES_MAX),
    signal,
    isAuthorized: true,
    request: (during) => followRedirects('url' in source ? source.url : '', (url) => request(host, api, url, during)),
  })

/**
 * Requests one URL, which must be on the API's host. A URL with the API's own origin is as trusted as `api_url`. On another
 * port the request must not reach a private network, unless the API itself is in one.
 */
async function request(host: Host, api: Api, url: string, signal: AbortSignal): Promise<Response> {
  checkHost(url, api.url)
  const headers = authorization(api)
  if (sameOrigin(url, api.url) || (await isPrivate(host, api.url, signal))) return api.fetch(url, { headers, redirect: 'manual', signal })
  return host.publicFetch(url, { headers, signal, responseBytesMax: BYTES_MAX + 1, admit: (hop) => checkHost(hop.href, api.url) })
}

async function isPrivate(host: Host, apiUrl: string, signal: AbortSignal): Promise<boolean> {
  try {
    await host.publicAddresses(new URL(apiUrl).hostname, signal)
    return false
  } catch (error) {
    if (error instanceof AppError && error.code === 'forbidden') return true
    throw error
  }
}

/** Throws `forbidden` for a URL on another host, with credentials that would replace the token, or over plain HTTP instead of HTTPS. */
function checkHost(text: string, apiUrl: string): void {
  const [url, api] = [URL.parse(text), URL.parse(apiUrl)]
  const isOwn = url !== null && url.hostname === api?.hostname && url.username === '' && url.password === ''
  if (!isOwn || !(url.protocol === api.protocol || url.protocol === 'https:')) {
    throw new AppError('forbidden', 'The attachment is not on the host of api_url')
  }
}
