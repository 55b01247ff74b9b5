// SPDX-License-Identifier: GPL-2.0-or-later
/* The simulated interrupts that gpio-sim stands on, as a module: irq_sim.c of the kernel's source is not made to be one. */
#include <linux/irq.h>
#include <linux/irqdesc.h>
#include <linux/module.h>

/* Modules do not reach irq_to_desc(); by its number an interrupt comes to the same handler. */
#define irq_to_desc(number) (number)
#define handle_simple_irq(number) generic_handle_irq(number)
#include "irq_sim.c"

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Simulated interrupts");
