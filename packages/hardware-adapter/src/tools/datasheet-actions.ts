/** The actions of the tool `datasheet`: search, download, list and read. */
import { signalScope } from '@sluice/kit'
import { AppError, type Host, howToGet } from '@sluice/sdk'
import { DATASHEET_BYTES_MAX, type Datasheet, DatasheetFiles, datasheetName } from './datasheet-files.ts'
import type { DatasheetInput } from './datasheet-input.ts'

const TEXT_CHARS_MAX = 50_000
const DOWNLOAD_MS_MAX = 60_000
/** The makers of most I2C and SPI chips. */
const VENDORS = ['ti.com', 'analog.com', 'microchip.com', 'nxp.com', 'st.com', 'infineon.com', 'bosch-sensortec.com', 'onsemi.com']

/**
 * Throws `invalid_request` when the action needs a value that is not given, and `not_found` when the data sheet to read is not
 * stored.
 */
export async function runDatasheetAction(
  host: Host,
  { action, device_name, url, pages }: DatasheetInput,
  signal: AbortSignal,
): Promise<string> {
  const files = new DatasheetFiles(host.dataDir)
  if (action === 'list') {
    const stored = await files.list()
    return stored.length === 0 ? 'No data sheets are stored.' : stored.map(sheetLine).join('\n')
  }
  if (device_name === undefined) throw new AppError('invalid_request', `${action} needs device_name`)
  const name = datasheetName(device_name)
  if (action === 'search') return search(await files.list(), device_name, name)
  if (action === 'download') {
    if (url === undefined) throw new AppError('invalid_request', 'download needs url')
    return `Downloaded: ${sheetLine(await download(host, url, signal, (body) => files.store(name, body)))}`
  }
  const sheet = await files.find(name)
  if (!sheet) throw new AppError('not_found', `No data sheet of ${device_name} is stored; download it first`)
  const pdfText = host.service('pdfText')
  if (!pdfText) return `${sheet.path}\nThis build cannot read its text; to read it, ${howToGet('tool-pdf')}.`
  const texts = await pdfText(await files.read(sheet), { signal, ...(pages !== undefined && { pages }) })
  return shortened(texts.map((text, index) => (pages === undefined ? `[page ${index + 1}]\n${text}` : text)).join('\n\n'))
}

function search(stored: readonly Datasheet[], device: string, name: string): string {
  const matches = stored.filter((sheet) => sheet.name.includes(name) || name.includes(sheet.name))
  const query = `${device.replaceAll(/[\s"]+/g, ' ').trim()} datasheet filetype:pdf (${VENDORS.map((vendor) => `site:${vendor}`).join(' OR ')})`
  const found = matches.length > 0 ? `Stored already:\n${matches.map(sheetLine).join('\n')}\n` : 'No data sheet of it is stored yet.\n'
  return `${found}To find one, search the web for:\n${query}\nthen download it with its URL.`
}

/**
 * Passes the body at a public URL to `store`. Throws `upstream_timeout` after a minute, `upstream` for any status but 200 and for a
 * broken connection, and `aborted` when `signal` aborts.
 */
async function download(
  host: Host,
  url: string,
  signal: AbortSignal,
  store: (body: AsyncIterable<Uint8Array>) => Promise<Datasheet>,
): Promise<Datasheet> {
  using limit = signalScope([signal], DOWNLOAD_MS_MAX, host.clock)
  try {
    const response = await host.publicFetch(url, {
      headers: { accept: 'application/pdf' },
      signal: limit.signal,
      // One byte more than a data sheet may have, so that `store` reports a larger one.
      responseBytesMax: DATASHEET_BYTES_MAX + 1,
    })
    if (response.status !== 200 || !response.body) {
      await response.body?.cancel()
      throw new AppError('upstream', `The server answered with status ${response.status}`)
    }
    return await store(response.body as unknown as AsyncIterable<Uint8Array>)
  } catch (error) {
    if (limit.timedOut) throw new AppError('upstream_timeout', 'The download took longer than a minute', { cause: error })
    if (signal.aborted) throw new AppError('aborted', 'The download was aborted', { cause: error })
    if (error instanceof AppError) throw error
    throw new AppError('upstream', 'The connection closed before the download was complete', { cause: error })
  }
}

const shortened = (text: string): string =>
  text.length <= TEXT_CHARS_MAX
    ? text
    : `${text.slice(0, TEXT_CHARS_MAX)}\n[truncated at ${TEXT_CHARS_MAX} characters: ask for fewer pages]`

const sheetLine = ({ name, path, bytes }: Datasheet): string => `${name} (${Math.ceil(bytes / 1024)} KiB): ${path}`
