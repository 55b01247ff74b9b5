/** Keeps the pictures of a result in the workspace, where the agent shows them to a model that reads pictures. */
import type { ContentBlock } from '@modelcontextprotocol/client'
import { resultsFolder, sha256Hex, type ToolContext } from '@sluice/sdk'

/** `image/jpg` is not registered, but servers write it. */
const ENDINGS: ReadonlyMap<string, string> = new Map([
  ['image/png', 'png'],
  ['image/jpeg', 'jpg'],
  ['image/jpg', 'jpg'],
  ['image/gif', 'gif'],
  ['image/webp', 'webp'],
])
const PICTURES_MAX = 4
/** 128 bits, so that a server cannot give two pictures one name. */
const NAME_DIGITS = 32
const BYTES_MAX = 5 * 1024 * 1024

/** Resolves to the paths of the kept pictures by their blocks. A picture that cannot be kept is left out. */
export async function savePictures(
  content: readonly ContentBlock[],
  tool: string,
  { session, turn, workspace }: Pick<ToolContext, 'session' | 'turn' | 'workspace'>,
): Promise<ReadonlyMap<ContentBlock, string>> {
  const saved = new Map<ContentBlock, string>()
  const folder = resultsFolder(session, turn)
  for (const block of content) {
    const { mimeType, data } = pictureIn(block)
    if (data === undefined || saved.size >= PICTURES_MAX) continue
    const ending = ENDINGS.get(mimeType.toLowerCase())
    const bytes = Buffer.from(data, 'base64')
    if (ending === undefined || bytes.length === 0 || bytes.length > BYTES_MAX) continue
    const path = `${folder}/${tool}-${sha256Hex(bytes).slice(0, NAME_DIGITS)}.${ending}`
    try {
      await workspace.write(path, bytes)
      saved.set(block, path)
    } catch {
      // The text of the result says that the picture is not shown.
    }
  }
  return saved
}

/** The picture of a block, also of a resource that is embedded with its bytes. */
function pictureIn(block: ContentBlock): { readonly mimeType: string; readonly data?: string } {
  if (block.type === 'image') return block
  if (block.type !== 'resource' || !('blob' in block.resource)) return { mimeType: '' }
  return { mimeType: block.resource.mimeType ?? '', data: block.resource.blob }
}
