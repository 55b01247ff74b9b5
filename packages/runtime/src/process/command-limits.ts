/** What one command may use up: the tighter of what was asked for and `[security.sandbox]`. */

import type { SandboxConfig } from '@sluice/config'
import type { SandboxPolicy } from '@sluice/sdk'

const MEBIBYTE = 1024 * 1024

export type CommandLimits = Required<Pick<SandboxPolicy, 'memoryBytesMax' | 'processesMax' | 'fileBytesMax' | 'cpuSecsMax'>>

export const commandLimits = (config: SandboxConfig): CommandLimits => ({
  memoryBytesMax: config.max_memory_mb * MEBIBYTE,
  processesMax: config.max_processes,
  fileBytesMax: config.max_file_mb * MEBIBYTE,
  cpuSecsMax: config.max_cpu_secs,
})

export const tightened = (policy: SandboxPolicy, limits: CommandLimits): SandboxPolicy => ({
  ...policy,
  memoryBytesMax: Math.min(policy.memoryBytesMax ?? Number.POSITIVE_INFINITY, limits.memoryBytesMax),
  processesMax: Math.min(policy.processesMax ?? Number.POSITIVE_INFINITY, limits.processesMax),
  fileBytesMax: Math.min(policy.fileBytesMax ?? Number.POSITIVE_INFINITY, limits.fileBytesMax),
  cpuSecsMax: Math.min(policy.cpuSecsMax ?? Number.POSITIVE_INFINITY, limits.cpuSecsMax),
})
