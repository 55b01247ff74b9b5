/** Readings of boards by their debug port, one visit at a time. */
import type { Board } from '@sluice/hardware'
import { AppError, type ChipInfo, type Host } from '@sluice/sdk'
import type { Block } from './chip-reader.ts'
import type { ProbeConfig } from './config.ts'
import { chipInfo, IDENTITY, identityFrom, mismatch } from './identify.ts'
import { readerOf } from './reader-of.ts'
import { createTurns } from './turns.ts'

export interface MemoryReading {
  readonly bytes: Uint8Array
  /** Where they come from, for people. */
  readonly source: string
  /** What does not fit the board, as a sentence. */
  readonly doubt?: string
}

export interface ChipReading extends ChipInfo {
  readonly source: string
  readonly doubt?: string
}

/** Both throw as `ChipReader.read` does, and `upstream` where the chip cannot be read. */
export interface Probe {
  info(board: Board, signal: AbortSignal): Promise<ChipReading>
  memory(board: Board, block: Block, signal: AbortSignal): Promise<MemoryReading>
}

export function createProbe(host: Pick<Host, 'clock' | 'log' | 'spawn'>, config: ProbeConfig): Probe {
  const inTurn = createTurns()

  /** The chip's identity comes with every reading, so that none is taken for another chip's. */
  const visit = async (board: Board, blocks: readonly Block[], signal: AbortSignal) => {
    const reader = readerOf(host, config, board)
    const readings = await inTurn(signal, () => reader.read([...IDENTITY, ...blocks], signal))
    const identity = identityFrom(readings)
    const doubt = mismatch(identity, board)
    return { source: reader.source, identity, rest: readings.slice(IDENTITY.length), ...(doubt !== undefined && { doubt }) }
  }

  return {
    async info(board, signal) {
      const { identity, rest: _, ...about } = await visit(board, [], signal)
      if (identity.core === undefined) throw new AppError('upstream', `No Arm Cortex-M core answers through ${about.source}`)
      return { ...chipInfo(identity, board), ...about }
    },

    async memory(board, block, signal) {
      const { identity: _, rest, ...about } = await visit(board, [block], signal)
      const [bytes] = rest
      if (!bytes)
        throw new AppError('upstream', `The chip does not give its memory at ${hexAddress(block.address)} through ${about.source}`)
      return { bytes, ...about }
    },
  }
}

export const hexAddress = (address: number): string => `0x${address.toString(16).toUpperCase().padStart(8, '0')}`
