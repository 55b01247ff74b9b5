/** Reads the guides of `docs/guides`: their fenced blocks, and the comments that tell the runner how to run them. */
import { globSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { ROOT } from '../daemons/bundle.ts'

/** A fenced block of a guide. */
export interface Block {
  /** The word after the fence, such as `sh`; empty without one. */
  readonly language: string
  readonly text: string
  /** The line of the opening fence, from 1. */
  readonly line: number
  /** The path of `<!-- file: … -->` on the line before the block: the runner writes the block there. */
  readonly file?: string
  /** The reason of `<!-- not run: … -->` on the line before the block. */
  readonly notRun?: string
}

/** A page of `docs/guides`. */
export interface Guide {
  /** The file name, such as `upgrade.md`. */
  readonly name: string
  /** The words of all `<!-- needs: … -->` of the page, such as `nginx` and `network`. */
  readonly needs: readonly string[]
  readonly blocks: readonly Block[]
}

const NEEDS = /^<!-- needs: (.+) -->$/gm
const NOTE = /^<!-- (file|not run): (.+) -->$/

/** Reads every guide, in the order of their names. */
export const readGuides = (): readonly Guide[] =>
  globSync('docs/guides/*.md', { cwd: ROOT })
    .toSorted()
    .map((path) => parseGuide(basename(path), readFileSync(join(ROOT, path), 'utf8')))

/** Parses one page. Throws if a fence is not closed. */
export function parseGuide(name: string, markdown: string): Guide {
  const needs = [...markdown.matchAll(NEEDS)].flatMap(([, words = '']) => words.split(/,\s*/))
  const lines = markdown.split('\n')
  const blocks: Block[] = []
  for (let index = 0; index < lines.length; index++) {
    const [, fence, language = ''] = /^(```+)(\S*)/.exec(lines[index] ?? '') ?? []
    if (fence === undefined) continue
    const end = lines.indexOf(fence, index + 1)
    if (end < 0) throw new Error(`The block at ${name}:${index + 1} is not closed.`)
    const text = lines.slice(index + 1, end).map((line) => `${line}\n`)
    blocks.push({ language, text: text.join(''), line: index + 1, ...noteOf(lines[index - 1] ?? '') })
    index = end
  }
  return { name, needs: [...new Set(needs)], blocks }
}

function noteOf(line: string): Pick<Block, 'file' | 'notRun'> {
  const [, kind, text = ''] = NOTE.exec(line) ?? []
  if (kind === undefined) return {}
  return kind === 'file' ? { file: text } : { notRun: text }
}
