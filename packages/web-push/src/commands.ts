/** The commands `sluice web-push list` and `sluice web-push remove`, which also work while the feature is turned off. */
import { AppError, CATALOGUE, type Command, type Host, printableLine } from '@sluice/sdk'
import { removeBrowser, shownBrowser } from './routes.ts'
import type { Subscriptions } from './subscriptions.ts'

const HELP = CATALOGUE['web-push'].commandHelp

export const pushCommands = (host: Host, subscriptions: Subscriptions): Command[] => [
  {
    name: 'web-push list',
    ...HELP['web-push list'],
    async run({ args, json, print }) {
      if (args.length > 0) throw new AppError('invalid_request', "'web-push list' takes no arguments")
      const browsers = (await subscriptions.list()).map(shownBrowser)
      if (json) print(JSON.stringify(browsers, null, 2))
      else if (browsers.length === 0) print('No browser has notifications.')
      else
        for (const { device, name, role, service, since } of browsers)
          print(printableLine(`${device}  ${name}  ${role}  ${service}  since ${since}`))
      return 0
    },
  },
  {
    name: 'web-push remove',
    ...HELP['web-push remove'],
    async run({ args, by, json, print }) {
      const [device, ...more] = args
      if (device === undefined || more.length > 0) throw new AppError('invalid_request', "'web-push remove' takes the id of one device")
      await removeBrowser(host, subscriptions, { device, by })
      print(json ? JSON.stringify({ removed: device }) : `removed the notifications of ${device}`)
      return 0
    },
  },
]
