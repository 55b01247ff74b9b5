/** The shell tool: the policy checks each command (docs/contract.md#policy), then the sandbox confines its processes. */
import { defineFeature } from '@sluice/sdk'
import { BackgroundJobs } from './background.ts'
import { backgroundTools } from './background-tools.ts'
import { shellConfig, shellSection } from './config.ts'
import { shell } from './shell.ts'

export default defineFeature({
  id: 'tool-shell',
  section: shellSection,
  build(host, section) {
    const config = shellConfig(section)
    const jobs = new BackgroundJobs()
    const { tool, source } = shell(host, config, jobs)
    const isOffered = config.background_secs > config.timeout_secs
    return {
      tools: [tool, ...backgroundTools(host, { jobs, isOffered, source })],
      services: { endCommands: (session) => jobs.end(session) },
      close: () => jobs.close(),
    }
  },
})
