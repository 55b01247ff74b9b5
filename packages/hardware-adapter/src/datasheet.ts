/** `datasheet`: finds, fetches, lists and reads the data sheets of parts. */
import { AppError, buildHint, defineTool, type Host, type Tool } from '@sluice/sdk'
import * as v from 'valibot'
import type { Adapters } from './adapters.ts'
import { type Datasheet, DatasheetFiles, datasheetName } from './datasheet-files.ts'
import { downloadDatasheet } from './download-datasheet.ts'

const TEXT_CHARS_MAX = 50_000
/** Makers of most of what speaks I2C and SPI. */
const VENDORS = ['ti.com', 'analog.com', 'microchip.com', 'nxp.com', 'st.com', 'infineon.com', 'bosch-sensortec.com', 'onsemi.com']

const input = v.object({
  action: v.pipe(
    v.picklist(['search', 'download', 'list', 'read']),
    v.description('`search`: where to look; `download`: a PDF from a URL; `list`: those kept; `read`: the text of one'),
  ),
  device_name: v.optional(
    v.pipe(v.string(), v.minLength(1), v.maxLength(200), v.description('The part, such as BME280; not needed to list')),
  ),
  url: v.optional(v.pipe(v.string(), v.minLength(1), v.maxLength(2048), v.description('Of download: the whole URL of the PDF'))),
  pages: v.optional(
    v.pipe(v.string(), v.minLength(1), v.maxLength(200), v.description('Of read: which pages, such as 1-3,7; default: all')),
  ),
})

export function datasheet(host: Pick<Host, 'publicFetch' | 'clock' | 'service' | 'dataDir'>, adapters: Adapters): Tool {
  const files = new DatasheetFiles(host.dataDir)

  const search = async (device: string): Promise<string> => {
    const name = datasheetName(device)
    const kept = (await files.list()).filter((sheet) => sheet.name.includes(name) || name.includes(sheet.name))
    const query = `${device.replaceAll(/[\s"]+/g, ' ').trim()} datasheet filetype:pdf (${VENDORS.map((vendor) => `site:${vendor}`).join(' OR ')})`
    const found = kept.length > 0 ? `Kept already:\n${kept.map(sheetLine).join('\n')}\n` : 'None is kept for it yet.\n'
    return `${found}To find one, search the web for:\n${query}\nthen download it with its URL.`
  }

  const read = async (device: string, { pages, signal }: { pages: string | undefined; signal: AbortSignal }): Promise<string> => {
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

  return defineTool({
    name: 'datasheet',
    description: 'Finds, downloads, lists and reads data sheets of electronic parts. Those downloaded are kept as PDF files.',
    // The URL is the model's own idea: asking for it tells somebody outside.
    risk: ({ action }) => (action === 'download' ? 'execute' : 'read'),
    input,
    available: () => adapters.present().length > 0,
    async run({ action, device_name, url, pages }, { signal }) {
      if (action === 'list') {
        const kept = await files.list()
        return kept.length === 0 ? 'No data sheets are kept.' : kept.map(sheetLine).join('\n')
      }
      if (device_name === undefined) throw new AppError('invalid_request', `${action} needs device_name`)
      if (action === 'search') return search(device_name)
      if (action === 'read') return read(device_name, { pages, signal })
      if (url === undefined) throw new AppError('invalid_request', 'download needs url')
      return `Downloaded: ${sheetLine(await downloadDatasheet(host, files, { name: datasheetName(device_name), url, signal }))}`
    },
  })
}

const sheetLine = ({ name, path, bytes }: Datasheet): string => `${name} (${Math.ceil(bytes / 1024)} KiB): ${path}`
