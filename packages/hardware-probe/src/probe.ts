/** Reads boards through their debug port, one reading at a time. */
import type { Board } from '@sluice/hardware'
import { SerialQueue } from '@sluice/kit'
import { AppError, type ChipInfo, type Host } from '@sluice/sdk'
import type { Block, ChipReader, Reading } from './chip-reader.ts'
import { accessTo, type ProbeConfig } from './config.ts'
import { GdbReader } from './gdb/gdb-reader.ts'
import { type ChipIdentity, chipInfo, IDENTITY, identityFrom, mismatch } from './identify.ts'
import { liveChipOf } from './live-boards.ts'
import { hexAddress } from './memory-range.ts'
import { OpenOcdProcessReader } from './openocd/process-reader.ts'
import { OpenOcdTclReader } from './openocd/tcl-reader.ts'

/** Readings at a time, the running one included. */
const READINGS_MAX = 16

export interface ProbeReading {
  /** Names the server or program that the chip was read through, for operators. */
  readonly source: string
  /** A sentence that says why the chip may not be the one of the board. */
  readonly warning?: string
}

export interface ChipReading extends ChipInfo, ProbeReading {}

export interface MemoryReading extends ProbeReading {
  readonly bytes: Uint8Array
}

interface IdentifiedReading extends ProbeReading {
  readonly identity: ChipIdentity
  readonly readings: readonly Reading[]
}

export class Probe {
  readonly #host: Host
  readonly #config: ProbeConfig
  /** A debug port serves one connection at a time. */
  readonly #readings = new SerialQueue({ name: 'the debug port', tasksMax: READINGS_MAX })

  constructor(host: Host, config: ProbeConfig) {
    this.#host = host
    this.#config = config
  }

  /** Identifies the chip. Throws as `ChipReader.read` does, and `upstream` when no Arm core answers. */
  async info(board: Board, signal: AbortSignal): Promise<ChipReading> {
    const { identity, readings: _, ...reading } = await this.#read(board, [], signal)
    if (identity.core === undefined) throw new AppError('upstream', `No Arm Cortex-M core answers through ${reading.source}`)
    return { ...chipInfo(identity, board), ...reading }
  }

  /** Reads memory. Throws as `ChipReader.read` does, and `upstream` when the chip refuses to read the block. */
  async memory(board: Board, block: Block, signal: AbortSignal): Promise<MemoryReading> {
    const { identity: _, readings, ...reading } = await this.#read(board, [block], signal)
    const [bytes] = readings
    if (!bytes)
      throw new AppError('upstream', `The chip refuses to read its memory at ${hexAddress(block.address)} through ${reading.source}`)
    return { bytes, ...reading }
  }

  /** Reads the chip's identity with every reading, so that the memory of another chip is recognized. */
  async #read(board: Board, blocks: readonly Block[], signal: AbortSignal): Promise<IdentifiedReading> {
    const reader = this.#readerFor(board)
    const readings = await this.#readings.run(() => reader.read([...IDENTITY, ...blocks], signal), signal)
    const identity = identityFrom(readings)
    const warning = mismatch(identity, board)
    return { source: reader.source, identity, readings: readings.slice(IDENTITY.length), ...(warning !== undefined && { warning }) }
  }

  /** Creates a reader, which connects to or starts nothing before it reads. Without configuration it starts OpenOCD. */
  #readerFor(board: Board): ChipReader {
    const { timeout_secs, openocd_program, openocd_network } = this.#config
    const timeoutMs = timeout_secs * 1000
    const { gdb, openocd_tcl, openocd } = accessTo(this.#config, board)
    if (gdb !== undefined) return new GdbReader(this.#host, gdb, timeoutMs)
    if (openocd_tcl !== undefined) return new OpenOcdTclReader(this.#host, openocd_tcl, timeoutMs)
    const args = openocd ?? liveChipOf(board)?.openocd ?? []
    return new OpenOcdProcessReader(this.#host, { program: openocd_program, args, network: openocd_network }, timeoutMs)
  }
}
