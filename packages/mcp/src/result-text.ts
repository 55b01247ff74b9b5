/** The result of a tool call as text for the model. */
import type { ContentBlock } from '@modelcontextprotocol/client'

/** The result of a tool call as the server returns it. */
export interface CallResult {
  readonly content: readonly ContentBlock[]
  readonly structuredContent?: unknown
  readonly isError?: boolean | undefined
}

/** `saved` are the paths of the pictures that are kept in the workspace. */
export function resultText({ content, structuredContent }: CallResult, saved: ReadonlyMap<ContentBlock, string> = new Map()): string {
  const text = content.map((block) => (saved.has(block) ? `[image ${saved.get(block)}]` : blockText(block))).join('\n')
  return text === '' && structuredContent !== undefined ? JSON.stringify(structuredContent) : text
}

export function blockText(block: ContentBlock): string {
  switch (block.type) {
    case 'text':
      return block.text
    case 'image':
    case 'audio':
      return `[${block.type} ${block.mimeType}, about ${Math.ceil((block.data.length * 3) / 4096)} KiB, not shown]`
    case 'resource_link':
      return `[resource ${block.uri}${block.description === undefined ? '' : `: ${block.description}`}]`
    case 'resource':
      return resourceText(block.resource)
    default:
      return '[content of a kind that is not known]'
  }
}

/** A part of a resource as the server returns it. */
export interface ResourcePart {
  readonly uri: string
  readonly mimeType?: string | undefined
  readonly text?: string | undefined
  readonly blob?: string | undefined
}

export const resourceText = ({ uri, mimeType = 'unknown type', text }: ResourcePart): string =>
  text ?? `[resource ${uri} of ${mimeType}, not text]`
