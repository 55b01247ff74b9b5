// Reads how to set up each channel from its README, for the page of the dashboard: the README is the one place for these steps.
import { globSync, readFileSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'

const PACKAGES = resolve(import.meta.dirname, '../packages')
const HEADING = '## Set up'
const SECTION = /^\[(channels_config\.\w+)\]$/m
const KEY = /^(\w+) = /gm
/** The step at which the keys are saved and Sluice begins to work with them. */
const SAVING = 'Fill in the section below'

/**
 * Returns the ways to set up a channel by the text of its README: the numbered steps of each part `## Set up …` before its block
 * of TOML. `title` is the heading without "Set up", and empty for the only way. `keys` are the keys of the block, and `saving` is the index of the
 * step at which they are saved, or -1.
 */
export const waysOf = (readme) =>
  readme
    .split(/^(?=## )/m)
    .filter((part) => part.startsWith(HEADING))
    .flatMap((part) => {
      const [text = '', block = ''] = part.split('```toml\n')
      const section = SECTION.exec(block.split('```')[0])?.[1]
      if (section === undefined) return []
      const example = block.slice(block.indexOf(`[${section}]`)).split('```')[0]
      const steps = stepsOf(text)
      return [
        {
          title: part.split('\n', 1)[0].slice(HEADING.length).trim(),
          section,
          keys: [...example.matchAll(KEY)].map(([, key]) => key),
          steps,
          saving: steps.findIndex((step) => step.startsWith(SAVING)),
        },
      ]
    })

/** The items of the numbered list; the lines below an item lose their indentation. */
const stepsOf = (text) =>
  text
    .split(/^\d+\. /m)
    .slice(1)
    .map((step) => step.replace(/^ {3}/gm, '').trim())

/** Returns the ways of every channel, by the id of its feature. */
export const channelGuides = () =>
  Object.fromEntries(
    globSync('channel-*/README.md', { cwd: PACKAGES })
      .sort()
      .map((file) => [basename(dirname(file)), waysOf(readFileSync(join(PACKAGES, file), 'utf8'))]),
  )
