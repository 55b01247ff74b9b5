/** Declares the `sluice skills` commands. Their code is loaded when one of them runs. */
import { CATALOGUE, type Command, type Host } from '@sluice/sdk'
import type { SkillLibrary } from './skill-library.ts'

const HELP = CATALOGUE['tool-skills'].commandHelp

/** The commands read the folder themselves, so they also work without a daemon and while skills are turned off. */
export const skillCommands = (host: Host, library: SkillLibrary): Command[] =>
  CATALOGUE['tool-skills'].commands.map((name) => ({
    name,
    ...HELP[name],
    async run(context) {
      const { SkillCommands } = await import('./skill-commands.ts')
      return new SkillCommands(host, library).run(name, context)
    },
  }))
