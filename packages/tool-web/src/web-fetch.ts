/** The tool `web_fetch`: one public page as text. */
import { readAll, SerialQueue, signalScope } from '@sluice/kit'
import { AppError, defineTool, type Host, isAtLeast, type Standing, type Tool, whole } from '@sluice/sdk'
import * as v from 'valibot'
import type { WebConfig } from './config.ts'

const URL_CHARS_MAX = 8192
/** The part of a page in one result. */
const PART_CHARS_MAX = 20_000
/** How far a body is searched for a NUL byte, which text does not have. */
const SNIFFED_BYTES = 8192
/** Browsers too look for the charset of a page in its first 1,024 bytes. */
const META_BYTES = 1024
const PAGES_WAITING_MAX = 64
const ACCEPT = 'text/html, application/xhtml+xml, text/plain;q=0.9, text/markdown;q=0.9, application/json;q=0.8, */*;q=0.1'

type WebHost = Pick<Host, 'publicFetch' | 'clock' | 'service' | 'log'>

export function webFetch(host: WebHost, config: WebConfig): Tool {
  // A page may take much memory while it is read.
  const reading = new SerialQueue({ name: 'the reading of pages', tasksMax: PAGES_WAITING_MAX })
  return defineTool({
    name: 'web_fetch',
    description: 'Reads a public web page as text with its links.',
    risk: 'read',
    decider: 'asker',
    egress: true,
    untrusted: ({ url }) => `web_fetch ${url}`,
    address: ({ url }) => url,
    showsAddresses: true,
    available: () => config.fetch,
    input: v.object({
      url: v.pipe(v.string(), v.minLength(1), v.maxLength(URL_CHARS_MAX)),
      offset: v.optional(v.pipe(whole(0), v.description('The character of the text to begin at')), 0),
    }),
    precheck: (_input, { standing }) => refuseStrangers(standing),
    async run({ url, offset }, { signal, standing, report }) {
      refuseStrangers(standing)
      if (!config.fetch) throw new AppError('forbidden', 'An operator has turned web_fetch off: [tools.web] fetch = false')
      using limit = signalScope([signal], config.timeout_secs * 1000, host.clock)
      let requests = 0
      const response = await host
        .publicFetch(url, {
          headers: { accept: ACCEPT },
          signal: limit.signal,
          responseBytesMax: config.response_bytes_max,
          admit: () => void requests++,
        })
        .catch((error: unknown) => {
          // A server may choose the address that a later request is refused for.
          if (requests <= 1 && error instanceof AppError && error.code === 'forbidden') report?.({ readNothing: true })
          throw error
        })
      const bytes = await readAll(response)
      const text = await pageText(host, { response, bytes, url }, { reading, signal: limit.signal })
      report?.({ ...(response.status >= 400 && { failed: true }), data: text })
      return partText(text, offset, response, url)
    },
  })
}

function refuseStrangers(standing: Standing): void {
  if (!isAtLeast(standing, 'listed')) throw new AppError('forbidden', 'web_fetch is not for unknown senders')
}

interface Page {
  readonly response: Response
  readonly bytes: Uint8Array
  readonly url: string
}

interface PageOptions {
  readonly reading: SerialQueue
  readonly signal: AbortSignal
}

async function pageText(
  { service, clock, log }: WebHost,
  { response, bytes, url }: Page,
  { reading, signal }: PageOptions,
): Promise<string> {
  const type = (response.headers.get('content-type') ?? '').toLowerCase()
  if (bytes.length === 0) return ''
  if (/^application\/pdf\b/.test(type)) {
    const read = service('pdfText')
    if (!read) throw new AppError('unavailable', 'The address leads to a PDF, which this build cannot read')
    return (await read(bytes, { signal })).join('\n\n')
  }
  const charset = charsetOf(bytes, type)
  const hasNul = !/^utf-16/.test(charset) && bytes.subarray(0, SNIFFED_BYTES).includes(0)
  const isBinary = /^(?:image\/(?!svg)|audio\/|video\/|font\/)/.test(type) || hasNul
  if (isBinary)
    throw new AppError('invalid_request', `The address leads to ${bytes.length} bytes of ${type || 'an unknown type'}, not to text`)
  const text = decode(bytes, charset)
  const isHtml = /html/.test(type) || (type === '' && /^\s*(?:<!doctype html|<html)/i.test(text))
  if (!isHtml) return text
  // The reader takes some milliseconds to load, so it is loaded with the first page.
  const { readPage } = await import('./read-page.ts')
  return reading.run(() => readPage({ html: text, url: response.url || url }, { signal, clock, log }), signal)
}

/** Returns the charset that a byte order mark, the header, or the beginning of a page names, in this order; UTF-8 without one. */
function charsetOf(bytes: Uint8Array, type: string): string {
  const [first, second] = bytes
  if (first === 0xff && second === 0xfe) return 'utf-16le'
  if (first === 0xfe && second === 0xff) return 'utf-16be'
  const named = /charset=["']?([^\s"';]+)/.exec(type)?.[1]
  if (named !== undefined || !/html|xml|^$/.test(type)) return named ?? 'utf-8'
  const head = Buffer.from(bytes.subarray(0, META_BYTES)).toString('latin1').toLowerCase()
  const meta = head.match(/<meta\s[^>]*|<\?xml\s[^>]*/g)?.find((tag) => /(?:charset|encoding)=/.test(tag)) ?? ''
  const declared = /(?:charset|encoding)=["']?([^\s"';/>?]+)/.exec(meta)?.[1] ?? 'utf-8'
  // A page that names UTF-16 in ASCII is not in UTF-16.
  return declared.startsWith('utf-16') ? 'utf-8' : declared
}

function decode(bytes: Uint8Array, charset: string): string {
  try {
    return new TextDecoder(charset).decode(bytes)
  } catch {
    // The charset is unknown to the decoder.
    return new TextDecoder().decode(bytes)
  }
}

function partText(text: string, offset: number, response: Response, url: string): string {
  const part = text.slice(offset, offset + PART_CHARS_MAX).toWellFormed()
  const end = offset + part.length
  return [
    ...(response.status >= 400 ? [`[HTTP ${response.status} ${response.statusText}]`] : []),
    ...(response.url !== '' && response.url !== URL.parse(url)?.href ? [`[redirected to ${response.url}]`] : []),
    part === '' ? '[no text]' : part,
    ...(end < text.length ? [`[Characters ${offset}-${end - 1} of ${text.length}; read on with offset=${end}]`] : []),
  ].join('\n')
}
