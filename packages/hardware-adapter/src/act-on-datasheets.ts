/** What `datasheet` does: searching, downloading, listing, reading. */
import { AppError, buildHint } from '@sluice/sdk'
import type { DatasheetHost, DatasheetInput } from './datasheet.ts'
import { type Datasheet, DatasheetFiles, datasheetName } from './datasheet-files.ts'
import { downloadDatasheet } from './download-datasheet.ts'

const TEXT_CHARS_MAX = 50_000
/** Makers of most of what speaks I2C and SPI. */
const VENDORS = ['ti.com', 'analog.com', 'microchip.com', 'nxp.com', 'st.com', 'infineon.com', 'bosch-sensortec.com', 'onsemi.com']

/** Throws `invalid_request` for what an action lacks, `not_found` for a sheet that is not kept. */
export async function actOnDatasheets(
  host: DatasheetHost,
  { action, device_name, url, pages }: DatasheetInput,
  signal: AbortSignal,
): Promise<string> {
  const files = new DatasheetFiles(host.dataDir)
  if (action === 'list') {
    const kept = await files.list()
    return kept.length === 0 ? 'No data sheets are kept.' : kept.map(sheetLine).join('\n')
  }
  if (device_name === undefined) throw new AppError('invalid_request', `${action} needs device_name`)
  if (action === 'search') return search(files, device_name)
  if (action === 'read') return read(host, files, device_name, { pages, signal })
  if (url === undefined) throw new AppError('invalid_request', 'download needs url')
  return `Downloaded: ${sheetLine(await downloadDatasheet(host, files, { name: datasheetName(device_name), url, signal }))}`
}

async function search(files: DatasheetFiles, device: string): Promise<string> {
  const name = datasheetName(device)
  const kept = (await files.list()).filter((sheet) => sheet.name.includes(name) || name.includes(sheet.name))
  const query = `${device.replaceAll(/[\s"]+/g, ' ').trim()} datasheet filetype:pdf (${VENDORS.map((vendor) => `site:${vendor}`).join(' OR ')})`
  const found = kept.length > 0 ? `Kept already:\n${kept.map(sheetLine).join('\n')}\n` : 'None is kept for it yet.\n'
  return `${found}To find one, search the web for:\n${query}\nthen download it with its URL.`
}

async function read(
  host: DatasheetHost,
  files: DatasheetFiles,
  device: string,
  { pages, signal }: { readonly pages: string | undefined; readonly signal: AbortSignal },
): Promise<string> {
  const sheet = await files.find(datasheetName(device))
  if (!sheet) throw new AppError('not_found', `No data sheet of ${device} is kept; download it first`)
  const pdfText = host.service('pdfText')
  if (!pdfText) return `${sheet.path}\nIts text cannot be read in this build: run \`${buildHint('tool-pdf')}\`.`
  const texts = await pdfText(await files.read(sheet), { signal, ...(pages !== undefined && { pages }) })
  const text = texts.map((page, index) => (pages === undefined ? `[page ${index + 1}]\n${page}` : page)).join('\n\n')
  return text.length <= TEXT_CHARS_MAX
    ? text
    : `${text.slice(0, TEXT_CHARS_MAX)}\n[truncated at ${TEXT_CHARS_MAX} characters: ask for fewer pages]`
}

const sheetLine = ({ name, path, bytes }: Datasheet): string => `${name} (${Math.ceil(bytes / 1024)} KiB): ${path}`
