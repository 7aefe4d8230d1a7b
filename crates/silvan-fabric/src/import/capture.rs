use std::borrow::Cow;

use crate::import::{ImportError, ImportWarning};

const RECORDERS: [&str; 6] = [
    "Script started on ",
    "Script done on ",
    "Script started, ",
    "Script done, ",
    "Last login: ",
    "=~=~=",
];

const TOOLS: [(&str, &str); 16] = [
    ("==(", "iblinkinfo"),
    ("# Port counters:", "perfquery"),
    ("# Port extended counters:", "perfquery"),
    ("Unicast lids [", "dump_lfts"),
    ("Multicast mlids [", "dump_mfts"),
    ("START_NODES", "ibdiagnet (db_csv)"),
    ("START_LINKS", "ibdiagnet (db_csv)"),
    ("NodeRecord dump:", "saquery"),
    ("# Node info:", "smpquery"),
    ("# Port info:", "smpquery"),
    ("Infiniband device '", "ibstatus"),
    ("CA '", "ibstat"),
    ("Errors for ", "ibqueryerrors"),
    ("SwitchName=", "Slurm (topology.conf)"),
    ("sminfo: sm lid", "sminfo"),
    ("{ SW Ports:", "ibdiagnet (lst)"),
];

pub(crate) fn clean(text: &str) -> Cow<'_, str> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if !text.contains('\x1b') {
        return Cow::Borrowed(text);
    }
    let mut cleaned = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('\x1b') {
        cleaned.push_str(before);
        rest = &behind[escape_length(behind)..];
    }
    cleaned.push_str(rest);
    Cow::Owned(cleaned)
}

fn escape_length(text: &str) -> usize {
    let line = text.find('\n').unwrap_or(text.len());
    let end = match text.chars().next() {
        // ECMA-48, control sequences: parameters, then a letter.
        Some('[') => text[1..]
            .find(|byte: char| matches!(byte, '\x40'..='\x7e'))
            .map(|at| at + 2),
        // Commands such as the title of a window.
        Some(']') => {
            let bell = text.find('\x07').map(|at| at + 1);
            let string_end = text.find("\x1b\\").map(|at| at + 2);
            bell.into_iter().chain(string_end).min()
        }
        Some('(' | ')') => text.char_indices().nth(2).map(|(at, _)| at),
        Some(first) => Some(first.len_utf8()),
        None => None,
    };
    end.unwrap_or(line).min(line)
}

pub(crate) fn is_of_terminal(line: &str) -> bool {
    let line = line.trim();
    if RECORDERS.iter().any(|start| line.starts_with(start)) {
        return true;
    }
    if line.starts_with("Connection to ") && line.ends_with(" closed.") {
        return true;
    }
    if line.starts_with("[sudo] ") || line == "Password:" || line.starts_with("```") {
        return true;
    }
    matches!(line, "exit" | "logout") || is_prompt(line)
}

/// `[root@node-1 ~]# ibnetdiscover`, `user@node-1:~$`, `switch-1 [standalone: master] > `.
fn is_prompt(line: &str) -> bool {
    if line.contains('"') || line.starts_with("Chassis ") {
        return false;
    }
    let mut ends = line.match_indices(['$', '#', '>', '%']);
    ends.any(|(at, end)| {
        let behind = &line[at + 1..];
        let before = line[..at].trim_end();
        let is_end = behind.is_empty() || behind.starts_with(' ');
        let is_bare = before.is_empty() && end != "#";
        let is_port = before.strip_prefix('[').is_some_and(|rest| {
            rest.trim_start()
                .starts_with(|first: char| first.is_ascii_digit())
        });
        let is_name = !before.is_empty()
            && !before.contains('=')
            && (!before.contains(char::is_whitespace)
                || before.contains('@')
                || before.ends_with([']', ')']));
        is_end && !is_port && (is_bare || is_name)
    })
}

pub(crate) fn left_out(what: &str, line: &str, number: usize) -> ImportWarning {
    let line = line.trim();
    let cut = line.char_indices().nth(60).map(|(end, _)| &line[..end]);
    ImportWarning {
        line: number,
        message: match cut {
            Some(start) => format!("the {what} \"{start}...\" is left out"),
            None => format!("the {what} {line:?} is left out"),
        },
    }
}

fn other_tool(text: &str) -> Option<(usize, &'static str)> {
    text.lines().zip(1..).find_map(|(line, number)| {
        let line = line.trim_start();
        let found = TOOLS.iter().find(|(mark, _)| match *mark {
            "==(" => line.contains(mark),
            _ => line.starts_with(mark),
        });
        if let Some((_, tool)) = found {
            return Some((number, *tool));
        }
        // `Switch  : 0x0002c90200423e70 ports 36 "leaf" base port 0 lid 6 lmc 0`.
        let (kind, rest) = line.split_once(':')?;
        let is_list = matches!(kind.trim_end(), "Switch" | "Ca" | "Rt")
            && rest.trim_start().starts_with("0x")
            && rest.contains(" ports ");
        is_list.then_some((number, "ibswitches, ibhosts or ibnetdiscover -l"))
    })
}

pub(crate) fn or_other_tool(error: ImportError, text: &str, wanted: &str) -> ImportError {
    match other_tool(text) {
        Some((line, tool)) => ImportError::new(
            line,
            format!("this is the output of {tool}"),
            format!("give the output of {wanted}"),
        ),
        None => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_go_and_lines_stay() {
        let text = "\u{feff}\x1b[?2004h\x1b]0;root@n1\x07[root@n1 ~]# a\n\x1b[1;32mb\x1b(B\x1b[m\nc\x1b]0;cut\nd";
        assert_eq!(clean(text), "[root@n1 ~]# a\nb\nc\nd");
        assert_eq!(clean("plain"), "plain");
    }

    #[test]
    fn prompts_are_told_from_lines_of_tools() {
        for line in [
            "$ ibnetdiscover",
            "[root@node-0003.cluster dgxa100]# ibnetdiscover",
            "[root@node-0003.cluster dgxa100]#",
            "user@n1:~$ sudo ibnetdiscover > a.txt",
            "\rnode-0280 [ mgmt-ha-active ] (config) # ",
            "switch-1 [standalone: master] >",
            "bash-5.1# ibnetdiscover",
            "Script started on 2031-05-06 07:08:09+00:00 [TERM=\"xterm\"]",
            "Script done on 2031-05-06 07:08:19+00:00 [COMMAND_EXIT_CODE=\"0\"]",
            "=~=~=~=~=~= PuTTY log 2031.05.06 12:06:05 =~=~=~=~=~=",
            "Connection to n1 closed.",
            "[sudo] password for admin: ",
            "Password:",
            "```text",
            "```",
        ] {
            assert!(is_of_terminal(line), "{line}");
        }
        for line in [
            "# Topology file: generated on Tue May  6 07:08:09 2031",
            "#",
            "",
            "Switch41 \"S-0c42a10300b5d1b6\"# \"leaf\" enhanced port 0 lid 1 lmc 0",
            "[1]\"H-1c34da03003ebb3c\"[1](1c34da03003ebb3c) # \"n1 > n2\" lid 5 4xHDR",
            "[ 1] # cut off",
            "switchguid=0x10(10) # comment",
            "Chassis 1 (guid 0x99) # comment",
            "Ca 1 \"H-1\"",
            "SW     6 34 0x0002c90200423e70 4x SDR    'leaf # 1'",
        ] {
            assert!(!is_of_terminal(line), "{line}");
        }
    }
}
