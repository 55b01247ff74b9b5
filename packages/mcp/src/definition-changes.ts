/** Shows an operator what the model would read of a definition that is not accepted. */
import { printableLine } from '@sluice/sdk'
import type { Definition } from './definition.ts'

type Shown = Pick<Definition, 'description' | 'inputSchema' | 'readOnlyHint'>

const PLAIN_KEY = /^[\w-]+$/

/**
 * Returns one line for each value that differs, `- path: value` as it was accepted and `+ path: value` as it is now. Every value of a tool
 * that was never accepted is new.
 */
export function changesOf(accepted: Shown | undefined, present: Shown): readonly string[] {
  const before = new Map(accepted ? valuesOf(accepted) : [])
  const now = new Map(valuesOf(present))
  return [...new Set([...now.keys(), ...before.keys()])].flatMap((path) => {
    const [was, is] = [before.get(path), now.get(path)]
    if (was === is) return []
    return [...(was === undefined ? [] : [`- ${path}: ${was}`]), ...(is === undefined ? [] : [`+ ${path}: ${is}`])]
  })
}

const valuesOf = ({ description, inputSchema, readOnlyHint }: Shown): [path: string, value: string][] =>
  leavesOf('', { description, readOnlyHint, parameters: inputSchema })

function leavesOf(path: string, value: unknown): [path: string, value: string][] {
  const isBranch = typeof value === 'object' && value !== null && !Array.isArray(value) && Object.keys(value).length > 0
  if (!isBranch) return [[path, printableLine(JSON.stringify(value) ?? '')]]
  return Object.entries(value).flatMap(([key, member]) => {
    const name = PLAIN_KEY.test(key) ? key : printableLine(JSON.stringify(key))
    return leavesOf(path === '' ? name : `${path}.${name}`, member)
  })
}
