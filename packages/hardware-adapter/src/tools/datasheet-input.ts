/** The input of the tool `datasheet`. */
import * as v from 'valibot'

export const input = v.object({
  action: v.pipe(
    v.picklist(['search', 'download', 'list', 'read']),
    v.description('`search`: where to look; `download`: a PDF from a URL; `list`: the stored data sheets; `read`: the text of one'),
  ),
  device_name: v.optional(
    v.pipe(v.string(), v.minLength(1), v.maxLength(200), v.description('The part, such as BME280; not needed to list')),
  ),
  url: v.optional(v.pipe(v.string(), v.minLength(1), v.maxLength(2048), v.description('For download: the full URL of the PDF'))),
  pages: v.optional(
    v.pipe(v.string(), v.minLength(1), v.maxLength(200), v.description('For read: the pages, such as 1-3,7; default: all')),
  ),
})

export type DatasheetInput = v.InferOutput<typeof input>
