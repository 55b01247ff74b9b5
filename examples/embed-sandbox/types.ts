// The same use in TypeScript.
import { openSandbox, type SandboxAlone } from '@sluice/daemon/sandbox'
import userns from '@sluice/sandbox-userns'
import type { SpawnResult } from '@sluice/sdk'

export async function listFiles(dataDir: string): Promise<string[]> {
  await using sandbox: SandboxAlone = await openSandbox({ features: [userns], dataDir })
  const result: SpawnResult = await sandbox.run({ file: 'ls', args: ['-1'], policy: { network: false, memoryBytesMax: 64 * 1024 * 1024 } })
  return result.stdout.trim().split('\n')
}
